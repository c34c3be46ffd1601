//! The bearer token that confirms which box speaks on a socket.

use sha2::{Digest, Sha256};

/// 32 random bytes in hex, made by the host at every start of a box.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// None unless it has the one shape a token has; nothing else is ever hashed.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 64 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What the host keeps: not enough to speak for a box.
#[derive(Debug, Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Looks at every byte whatever the first ones say.
    pub fn matches(&self, token: &Token) -> bool {
        let other = token.hash();
        let differing = self.0.iter().zip(other.0).fold(0, |acc, (a, b)| acc | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

/// The token of an `Authorization` header: scheme in any case, one or more spaces.
pub(crate) fn bearer(header: &str) -> Option<&str> {
    let header = header.trim();
    let (scheme, rest) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim()).filter(|t| !t.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_its_own_hash_only() {
        let (a, b) = (Token::from_bytes([1; 32]), Token::from_bytes([2; 32]));
        assert!(a.hash().matches(&a));
        assert!(!a.hash().matches(&b));
        assert_eq!(format!("{a:?}"), "Token(…)");
    }

    #[test]
    fn only_the_one_shape_is_a_token() {
        assert!(Token::parse(&"a".repeat(64)).is_some());
        for bad in [String::new(), "a".repeat(63), "A".repeat(64), "é".repeat(32), "g".repeat(64)]
        {
            assert!(Token::parse(&bad).is_none());
        }
    }

    #[test]
    fn bearer_headers_are_read_leniently() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("  bearer    abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer "), None);
    }
}
