//! `checkpoint.create`: what a box may say about a checkpoint of itself.

use crate::refusal::Refusal;
use protocol::rpc::CheckpointParams;
use protocol::text::shortened;
use std::fmt;
use std::str::FromStr;

const SURFACE: &str = "checkpoint create";

/// A letter or digit, then at most 63 of letters, digits, `.`, `_` and `-`: never an option, always
/// printable, and part of an image's tag as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointName(String);

impl CheckpointName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CheckpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CheckpointName {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let fits = text.len() <= 64
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if fits {
            return Ok(Self(text.to_owned()));
        }
        let why = format!(
            "'{}' is no name: use 1 to 64 letters, digits, '.', '_' and '-', starting with a letter or digit.",
            shortened(text, 100)
        );
        Err(Refusal::shape(SURFACE, why))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The host finds one when absent.
    pub name: Option<CheckpointName>,
    pub set_default: bool,
    pub replace: bool,
}

impl Create {
    pub const SURFACE: &str = SURFACE;

    pub fn parse(params: &CheckpointParams) -> Result<Self, Refusal> {
        let name = params.name.as_deref().map(str::parse).transpose()?;
        if params.replace && name.is_none() {
            return Err(Refusal::shape(SURFACE, "name the checkpoint that is to be replaced."));
        }
        Ok(Self { name, set_default: params.set_default, replace: params.replace })
    }

    /// It changes what other boxes start from, or loses an older checkpoint.
    pub fn is_plain(&self) -> bool {
        !self.set_default && !self.replace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_19_46_a_name_is_a_name() {
        let long = "a".repeat(65);
        for bad in ["", "--x", "-x", ".a", "_a", "a b", "a/b", "a:b", "a\n", "ä", &long] {
            let error = bad.parse::<CheckpointName>().unwrap_err();
            assert_eq!(error.exit_code, 64, "{bad:?}");
        }
        for good in ["a", "A.b_c-1", "0", &"a".repeat(64)] {
            assert_eq!(good.parse::<CheckpointName>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn what_is_replaced_has_to_be_named() {
        let params = CheckpointParams { replace: true, ..CheckpointParams::default() };
        assert_eq!(Create::parse(&params).unwrap_err().exit_code, 64);
        assert!(Create::parse(&CheckpointParams::default()).unwrap().is_plain());
    }

    proptest::proptest! {
        #[test]
        fn a_name_that_passes_is_one_part_of_a_tag(
            name in proptest::option::of("[a-zA-Z0-9._/: \n-]{0,8}|[a-z0-9._-]{60,68}|.{0,20}"),
            set_default in proptest::bool::ANY,
            replace in proptest::bool::ANY,
        ) {
            let params = CheckpointParams { name, set_default, replace };
            match Create::parse(&params) {
                Ok(create) => {
                    let name = create.name.as_ref().map(CheckpointName::as_str);
                    proptest::prop_assert_eq!(name, params.name.as_deref());
                    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
                    let fits = |n: &str| {
                        (1..=64).contains(&n.len()) && n.bytes().all(plain) && n.as_bytes()[0].is_ascii_alphanumeric()
                    };
                    proptest::prop_assert!(name.is_none_or(fits) && (name.is_some() || !create.replace));
                    proptest::prop_assert_eq!((create.set_default, create.replace), (set_default, replace));
                }
                Err(refusal) => {
                    proptest::prop_assert_eq!(refusal.exit_code, 64);
                    proptest::prop_assert!(!refusal.text.chars().any(char::is_control));
                }
            }
        }
    }
}
