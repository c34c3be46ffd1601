//! The two ways a box reaches its host, and tests that hold for both.

/// Tests that are run with boxes of each kind: sockets that are mounted, and the engine's exec stream.
macro_rules! over_both_channels {
    ($($(#[$meta:meta])* fn $name:ident($channel:ident) $body:block)*) => {
        $(
            mod $name {
                #[allow(unused_imports)]
                use super::*;

                $(#[$meta])*
                fn over($channel: &str) $body

                #[test]
                fn socket() {
                    over("socket");
                }

                #[test]
                fn exec() {
                    over("exec");
                }
            }
        )*
    };
}
pub(crate) use over_both_channels;
