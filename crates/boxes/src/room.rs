//! The engine's disk, full.

/// What to do when these words, of the engine or of a box, say so.
pub fn hint(words: &str) -> Option<&'static str> {
    is_full(words).then_some(
        "make room on the engine's disk and try again: agentbox prune --all shows what can go, \
         agentbox destroy removes a box",
    )
}

/// Whether these words are about a full disk, whoever found it full: the kernel, git, the engine or the
/// database.
pub fn is_full(words: &str) -> bool {
    let words = words.to_lowercase();
    ["no space left on device", "disk quota exceeded", "is full"].iter().any(|w| words.contains(w))
}
