//! The project's file was read again: what runs becomes what it says.
//!
//! What did not change goes on. What changed is stopped first and only then started as it is now; a
//! file with a mistake changes nothing.

use super::config;
use super::engine::{Engine, Live, Then};
use super::unit::Unit;
use protocol::supervisor::{Reloaded, UnitState as State};

impl Engine {
    /// Reads the file for the first time. A mistake leaves no units, and is told.
    pub fn load(&mut self) {
        if let Err(why) = self.reload() {
            crate::complain(&format!("agentbox.yaml: {why}"));
        }
    }

    pub fn reload(&mut self) -> Result<Reloaded, String> {
        self.touch();
        let loaded = match config::load(&self.places.config, &self.places.workspace) {
            Ok(loaded) => loaded,
            Err(why) => {
                self.config_error = Some(why.clone());
                return Err(why);
            }
        };
        self.config_error = None;
        self.warnings = loaded.warnings;
        Ok(self.apply(loaded.units))
    }

    pub fn apply(&mut self, wanted: Vec<Unit>) -> Reloaded {
        let mut done = Reloaded::default();
        for at in (0..self.units.len()).rev() {
            let live = &self.units[at];
            if !wanted.iter().any(|unit| unit.name == live.unit.name) {
                done.removed.push(live.unit.name.clone());
                self.remove(at);
            }
        }
        for unit in wanted {
            let name = unit.name.clone();
            let Some(at) = self.at(&name) else {
                self.units.push(Live::new(unit, &self.logs));
                done.added.push(name);
                continue;
            };
            let live = &self.units[at];
            let leaving = live.running.as_ref().is_some_and(|r| matches!(r.then, Then::Remove));
            let pending = live.running.as_ref().is_some_and(|r| matches!(r.then, Then::Replace(_)));
            if live.unit != unit || leaving || pending {
                done.changed.push(name);
                self.change(at, unit);
            } else if live.state == State::Skipped {
                self.set_state(at, State::Pending);
            }
        }
        done.removed.sort();
        done
    }

    fn remove(&mut self, at: usize) {
        if self.units[at].running.is_some() {
            self.units[at].wanted = false;
            self.end(at, Then::Remove);
        } else {
            self.units.remove(at);
        }
    }

    fn change(&mut self, at: usize, unit: Unit) {
        if self.units[at].running.is_some() {
            self.end(at, Then::Replace(Box::new(unit)));
        } else {
            self.replace(at, unit);
        }
    }

    /// Nothing of the old one runs any more.
    pub fn replace(&mut self, at: usize, unit: Unit) {
        let restarts = self.units[at].restarts;
        self.units[at] = Live { restarts, ..Live::new(unit, &self.logs) };
        self.touch();
    }
}
