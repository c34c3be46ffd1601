//! A box's colour, the same one the window gives it. It never stands alone: the name is beside it.

use protocol::BoxId;

/// Each at least 3:1 against light and dark backgrounds; `ui/src/lib/colour.ts` has the same list.
const PALETTE: [[u8; 3]; 12] = [
    [0x3b, 0x7d, 0xe0],
    [0xd9, 0x48, 0x6e],
    [0x0d, 0x94, 0x88],
    [0x9a, 0x5c, 0xf0],
    [0xd8, 0x62, 0x0f],
    [0x5a, 0x8f, 0x16],
    [0x0e, 0x8f, 0xae],
    [0xd9, 0x3a, 0x34],
    [0xa8, 0x74, 0x1a],
    [0x65, 0x68, 0xee],
    [0xc0, 0x3a, 0xc9],
    [0x6b, 0x7a, 0x90],
];

/// Red, green and blue, each from 0 to 1.
pub fn of(id: &BoxId) -> (f64, f64, f64) {
    // An id is `b` and 8 hex digits by construction.
    let number = u32::from_str_radix(&id.as_str()[1..], 16).unwrap_or(0);
    let [red, green, blue] = PALETTE[number as usize % PALETTE.len()].map(|c| f64::from(c) / 255.0);
    (red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_uses_the_same_colours() {
        let ui = include_str!("../../ui/src/lib/colour.ts");
        let listed: Vec<_> = ui.lines().filter_map(|l| l.trim().strip_prefix("\"#")).collect();
        let ours: Vec<_> =
            PALETTE.iter().map(|[r, g, b]| format!("{r:02x}{g:02x}{b:02x}\",")).collect();
        assert_eq!(listed, ours);
    }

    #[test]
    fn the_id_chooses() {
        assert_eq!(of(&"b00000000".parse().unwrap()), of(&"b0000000c".parse().unwrap()));
        assert_ne!(of(&"b00000000".parse().unwrap()), of(&"b00000001".parse().unwrap()));
    }
}
