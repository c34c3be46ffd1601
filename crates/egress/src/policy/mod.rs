//! What boxes may reach: read from files, merged from layers, compared with requests. No I/O.

mod decide;
mod host_pattern;
mod model;

pub use decide::{ConnectVerdict, RESERVED, RISKY_PORTS, THIS_COMPUTER, is_reserved};
pub use host_pattern::BadPattern;
pub use model::*;
