//! End-to-end tests, named after the promises they keep. Real engine, real desktop, real git.
//!
//! `scripts/test` runs them as an unprivileged user; see there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod answers;
mod box_screen;
mod boxes;
mod carriers;
mod carry;
mod channels;
mod checkpoints;
mod cli_flags;
mod cli_surface;
mod commands;
mod control;
mod conversations;
mod copy;
mod crash;
mod create;
mod create_faults;
mod create_repos;
mod daemons;
mod dashboard;
mod desktop;
mod desktop_new_box;
mod desktop_parts;
mod doctor;
mod editor;
mod engine_restart;
mod faults;
mod full_disk;
mod git;
mod github;
mod greedy;
mod hostile;
mod image;
mod inner_engine;
mod keyring;
mod lifecycle;
mod list_cost;
mod origin;
mod people;
mod podman;
mod policy;
mod queue;
mod real_app;
mod remember;
mod services;
mod sessions;
mod settings;
mod ssh;
mod supervisor;
mod transfers;
mod two_boxes;
mod urls;
mod world;
