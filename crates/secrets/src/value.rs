//! The value of a credential, for as long as it is in memory.

use crate::Error;
use std::fmt;
use zeroize::Zeroizing;

/// Far above every token, below what a keyring or an environment variable takes.
pub(crate) const MOST: usize = 64 * 1024;

/// A secret text. Overwritten when dropped, and never printed.
///
/// This covers the value itself: what a keyring's protocol or a child's environment made of it is
/// theirs.
#[derive(Clone)]
pub struct Value(Zeroizing<String>);

impl Value {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text. Only for the environment of the one program, or the header of the one request, that
    /// needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The bytes of a store as a value fit for use.
    pub(crate) fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> Result<Self, Error> {
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Error::Malformed("the credential is not text; set it again"))?;
        Self::new(text.to_owned()).checked()
    }

    /// Without the line end a pasted or piped value has, and within the bounds of every store.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        let text = self.expose();
        let kept = text.strip_suffix('\n').map_or(text, |t| t.strip_suffix('\r').unwrap_or(t));
        if kept.is_empty() {
            return Err(Error::Empty);
        }
        if kept.len() > MOST {
            return Err(Error::TooLarge);
        }
        if kept.contains('\0') {
            return Err(Error::Malformed("a credential cannot contain a NUL character"));
        }
        // In a header or a line of a protocol it would begin another one.
        if kept.contains(['\n', '\r']) {
            return Err(Error::Malformed("a credential cannot have more than one line"));
        }
        if kept.len() == text.len() {
            return Ok(self);
        }
        Ok(Self::new(kept.to_owned()))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<String, Error> {
        Value::new(text.into()).checked().map(|v| v.expose().to_owned())
    }

    #[test]
    fn one_line_end_is_left_out() {
        for (given, kept) in [("a", "a"), ("a\n", "a"), ("a\r\n", "a")] {
            assert_eq!(checked(given).unwrap(), kept, "{given:?}");
        }
    }

    #[test]
    fn what_no_store_takes_is_refused() {
        assert_eq!(checked(""), Err(Error::Empty));
        assert_eq!(checked("\n"), Err(Error::Empty));
        assert_eq!(checked(&"x".repeat(MOST + 1)), Err(Error::TooLarge));
        assert!(checked(&"x".repeat(MOST)).is_ok());
        for bad in ["a\0b", "a\n\n", "a\r", "a\nb", "a\r\nb", "\n\n"] {
            assert!(matches!(checked(bad), Err(Error::Malformed(_))), "{bad:?}");
        }
        let latin = Value::from_bytes(Zeroizing::new(vec![b'a', 0xe9]));
        assert!(matches!(latin, Err(Error::Malformed(_))));
    }

    #[test]
    fn a_value_is_never_printed() {
        let value = Value::new("hunter2-hunter2".into());
        assert_eq!(format!("{value:?} {:?}", Some(&value)), "[secret] Some([secret])");
    }
}
