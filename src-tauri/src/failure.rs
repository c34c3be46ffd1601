//! Why a program ends before it does anything, as told on stderr.

use std::process::ExitCode;

#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: 1 }
    }

    /// It was started in a way, or in a place, that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn report(self, program: &str) -> ExitCode {
        eprintln!("{program}: {}", self.message);
        if let Some(hint) = self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}
