//! Whom a command in a box runs as, when a person names somebody.

use protocol::control::{ControlError, ErrorCode};

const LONGEST: usize = 64;

/// A name or a number as engines take it, with a group or without; nothing else.
pub fn checked(user: String) -> Result<String, ControlError> {
    let fits = |part: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        !part.is_empty() && part.bytes().all(inner) && !part.starts_with(['-', '.'])
    };
    let (name, group) = user.split_once(':').map_or((user.as_str(), None), |(u, g)| (u, Some(g)));
    if user.len() <= LONGEST && fits(name) && group.is_none_or(fits) {
        return Ok(user);
    }
    Err(ControlError::new(ErrorCode::Usage, format!("{user:?} cannot be a user of a box"))
        .hint("a name or a number, such as root or 1000, and a group after a colon if you like."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_or_a_number() {
        for good in ["root", "1000", "vscode", "0:0", "www-data", "a.b_c"] {
            assert_eq!(checked(good.into()).unwrap(), good);
        }
        let long = "x".repeat(65);
        for bad in ["", ":", "root:", ":0", "-u", "a b", "a\nb", "a:b:c", "é", &long] {
            let error = checked(bad.into()).unwrap_err();
            assert_eq!((error.code, error.hints.len()), (ErrorCode::Usage, 1), "{bad:?}");
        }
    }
}
