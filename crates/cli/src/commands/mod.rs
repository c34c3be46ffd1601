//! One file per command.

pub mod approvals;
pub mod approve;
pub mod audit;
pub mod checkpoints;
pub mod completions;
pub mod create;
pub mod demo;
pub mod deny;
pub mod destroy;
pub mod doctor;
pub mod events;
pub mod git;
pub mod grants;
pub mod integrations;
pub mod list;
pub mod mute;
pub mod prepare;
pub mod quiet;
pub mod quit;
pub mod secrets;
pub mod serve;
pub mod shell;
pub mod start;
pub mod status;
pub mod stop;
