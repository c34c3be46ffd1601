//! One file per command.

pub mod approvals;
pub mod approve;
pub mod audit;
pub mod completions;
pub mod create;
pub mod demo;
pub mod deny;
pub mod destroy;
pub mod doctor;
pub mod grants;
pub mod list;
pub mod prepare;
pub mod quit;
pub mod serve;
pub mod shell;
pub mod start;
pub mod status;
pub mod stop;
