//! Amounts of bytes as people say them.

/// “512 bytes”, “1.2 KB”, “34 MB”.
pub fn bytes(amount: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if amount < 1000 {
        return format!("{amount} bytes");
    }
    let mut tenths = amount / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    match tenths {
        ..100 => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        _ => format!("{} {}", tenths / 10, UNITS[unit]),
    }
}

/// A dash for what is not known.
pub fn known(amount: Option<u64>) -> String {
    amount.map_or_else(|| "-".to_owned(), bytes)
}
