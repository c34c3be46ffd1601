//! Names of git things that cannot hold a bad value.
//!
//! Each of these ends up in an argument list or a ref file. None can begin with `-`, so none can
//! be read as an option; none can contain a control character, so all are safe to print.

use protocol::text::visible;
use std::fmt;
use std::str::FromStr;

/// Longer names exist only to make trouble.
const MAX_BRANCH_BYTES: usize = 1024;
const MAX_REMOTE_BYTES: usize = 64;
/// A hundred of them fit a question.
const MAX_TAG_BYTES: usize = 128;

/// Why a string is not the name it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("'{}' is not the name of a remote", visible(.0))]
    Remote(String),
    #[error("'{}' is not a branch name", visible(.0))]
    Branch(String),
    #[error("'{}' is not a tag name", visible(.0))]
    Tag(String),
    #[error("'{}' is not a ref name", visible(.0))]
    Ref(String),
    #[error("'{}' is not an object id", visible(.0))]
    Object(String),
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident, $check:path, $error:path) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                if $check(text) { Ok(Self(text.to_owned())) } else { Err($error(text.to_owned())) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A remote by name. Addresses, paths and helpers (`ext::…`) do not fit. A leading dot does
    /// not either: git reads `.` as “this repository”.
    RemoteName,
    is_remote,
    BadName::Remote
);

name!(
    /// A branch without `refs/heads/`, by git's own ref-format rules.
    BranchName,
    is_branch,
    BadName::Branch
);

name!(
    /// A tag without `refs/tags/`, by the same rules.
    TagName,
    is_tag,
    BadName::Tag
);

name!(
    /// A full ref name, `refs/…`.
    RefName,
    is_ref,
    BadName::Ref
);

name!(
    /// A whole object id: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits.
    ObjectId,
    is_object,
    BadName::Object
);

impl Default for RemoteName {
    /// What an absent remote means.
    fn default() -> Self {
        Self("origin".to_owned())
    }
}

impl BranchName {
    pub fn to_ref(&self) -> RefName {
        RefName(format!("refs/heads/{}", self.0))
    }

    /// One of the two names is the other, or a folder of it: only one of both can be a branch. By
    /// letters alone, as some disks compare.
    pub fn collides(&self, other: &BranchName) -> bool {
        let (a, b) = (self.0.to_lowercase(), other.0.to_lowercase());
        let below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        a == b || below(&a, &b) || below(&b, &a)
    }
}

impl TagName {
    pub fn to_ref(&self) -> RefName {
        RefName(format!("refs/tags/{}", self.0))
    }
}

impl ObjectId {
    /// Enough of it to recognise.
    pub fn short(&self) -> &str {
        self.0.get(..7).unwrap_or(&self.0)
    }
}

fn is_remote(text: &str) -> bool {
    (1..=MAX_REMOTE_BYTES).contains(&text.len())
        && !text.starts_with(['-', '.'])
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn is_branch(text: &str) -> bool {
    text != "HEAD" && !text.starts_with("refs/") && is_ref_path(text)
}

fn is_tag(text: &str) -> bool {
    text.len() <= MAX_TAG_BYTES && is_branch(text)
}

fn is_ref(text: &str) -> bool {
    text.strip_prefix("refs/").is_some_and(is_ref_path)
}

/// The rules of git-check-ref-format(1), and no leading `-`.
fn is_ref_path(text: &str) -> bool {
    let allowed = |c: char| !c.is_control() && !" ~^:?*[\\".contains(c);
    let segment = |s: &str| {
        let lock = s.as_bytes().ends_with(b".lock");
        !s.is_empty() && !s.starts_with('.') && !lock
    };
    (1..=MAX_BRANCH_BYTES).contains(&text.len())
        && text != "@"
        && !text.starts_with('-')
        && !text.ends_with('.')
        && !text.contains("..")
        && !text.contains("@{")
        && text.chars().all(allowed)
        && text.split('/').all(segment)
}

fn is_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_19_12_a_remote_is_a_name_and_nothing_else() {
        let long = "r".repeat(65);
        let bad = [
            "",
            "--upload-pack=x",
            "-o",
            "ext::sh",
            "ext::sh -c x",
            "https://h/x",
            "git@h:o/r",
            "/srv/repo",
            "../repo",
            ".",
            "..",
            "a b",
            "a\n",
            "ö",
            &long,
        ];
        for bad in bad {
            assert!(bad.parse::<RemoteName>().is_err(), "{bad:?} was taken");
        }
        for good in ["origin", "up-stream", "fork_2", "a.b"] {
            assert_eq!(good.parse::<RemoteName>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn branches_follow_ref_format() {
        let bad = [
            "",
            "-x",
            "a..b",
            "refs/heads/x",
            "HEAD",
            "@",
            "a@{1}",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "a/",
            "/a",
            "a//b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "a\x7f",
            "a\nb",
        ];
        for bad in bad {
            assert!(bad.parse::<BranchName>().is_err(), "{bad:?} was taken");
        }
        for good in ["main", "agentbox/fix-login", "a@b", "ünï", "v1.2"] {
            assert!(good.parse::<BranchName>().is_ok(), "{good:?} was refused");
        }
        assert_eq!("a/b".parse::<BranchName>().unwrap().to_ref().as_str(), "refs/heads/a/b");
    }

    #[test]
    fn tags_follow_ref_format() {
        for bad in ["", "-d", "a..b", "refs/tags/x", "a b", "v1^{}", &"v".repeat(129)] {
            assert!(bad.parse::<TagName>().is_err(), "{bad:?} was taken");
        }
        assert_eq!("v1.2/rc".parse::<TagName>().unwrap().to_ref().as_str(), "refs/tags/v1.2/rc");
    }

    #[test]
    fn branches_that_cannot_be_side_by_side() {
        let collides =
            |a: &str, b: &str| a.parse::<BranchName>().unwrap().collides(&b.parse().unwrap());
        assert!(collides("agentbox/a", "agentbox/a"));
        assert!(collides("agentbox/A", "agentbox/a"));
        assert!(collides("agentbox/a/b", "agentbox/a"));
        assert!(collides("agentbox/a", "agentbox/a/b"));
        assert!(!collides("agentbox/a", "agentbox/ab"));
    }

    #[test]
    fn refs_and_objects() {
        assert!("refs/remotes/origin/main".parse::<RefName>().is_ok());
        assert!("refs/../x".parse::<RefName>().is_err());
        assert!("main".parse::<RefName>().is_err());
        assert!("0123456789abcdef0123456789abcdef01234567".parse::<ObjectId>().is_ok());
        assert!("0123456789ABCDEF0123456789abcdef01234567".parse::<ObjectId>().is_err());
        assert!("HEAD".parse::<ObjectId>().is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_name_can_be_read_as_an_option(text in "[-.a-z/@{~ ]{0,12}|.{0,12}") {
            if let Ok(name) = text.parse::<RemoteName>() {
                proptest::prop_assert!(!name.as_str().starts_with('-'));
            }
            if let Ok(name) = text.parse::<TagName>() {
                proptest::prop_assert!(text.parse::<BranchName>().is_ok() && !name.as_str().starts_with('-'));
            }
            if let Ok(name) = text.parse::<BranchName>() {
                proptest::prop_assert!(!name.as_str().starts_with('-'));
                proptest::prop_assert!(!name.as_str().chars().any(char::is_control));
            }
        }
    }
}
