//! The real program against a scripted host: what it asks, what it prints, how it ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod attach;
mod boxes;
mod config;
mod demo;
mod egress;
mod errors;
mod git;
mod init;
mod install;
mod launch;
mod login;
mod places;
mod prepare;
mod secrets;
mod shell;
mod support;
mod surface;
