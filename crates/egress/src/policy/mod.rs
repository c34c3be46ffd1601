//! What boxes may reach: read from files, merged from layers, compared with requests. No I/O.

pub mod catalog;
mod decide;
mod git_services;
mod host_pattern;
mod layers;
pub mod lint;
mod model;
mod problem;
pub mod push;
mod read;

pub use decide::{
    ConnectVerdict, RESERVED, RISKY_PORTS, THIS_COMPUTER, is_reserved, is_reserved_name,
};
pub use host_pattern::BadPattern;
pub use layers::{Inputs, LayerText, Rendered, render};
pub use model::*;
pub use problem::Problems;

#[cfg(test)]
mod tests;
