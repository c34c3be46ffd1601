//! How much of the computer a box may use, and how people write it.

use serde::{Deserialize, Serialize};

/// What is absent, or 0, is not limited; the number of processes always is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Limits {
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub memory_bytes: Option<u64>,
    /// A thousand millionth of a processor each.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub nano_cpus: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub pids: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub disk_bytes: Option<u64>,
}

impl Limits {
    /// These, and `other` where these say nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            nano_cpus: self.nano_cpus.or(other.nano_cpus),
            pids: self.pids.or(other.pids),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
        }
    }
}

/// A size: `1073741824`, `512m`, `4g`. None when it is no size.
pub fn parse_size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let at = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(at);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|n| i64::try_from(*n).is_ok())
}

/// A number of processors: `2`, `1.5`. None when it is no such number.
pub fn parse_cpus(text: &str) -> Option<u64> {
    const WHOLE: u64 = 1_000_000_000;
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    let nano = whole.parse::<u64>().ok()?.checked_mul(WHOLE)?.checked_add(part)?;
    // The engine takes no less than a hundredth.
    (nano == 0 || (WHOLE / 100..=1024 * WHOLE).contains(&nano)).then_some(nano)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("1k", 1024),
            ("512m", 512 << 20),
            ("4G", 4 << 30),
            ("2gb", 2 << 30),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "m", "-1", "1.5g", "1 x", "99999999999999999999", "9999999999g"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn processors_may_be_parts() {
        for (text, nano) in
            [("0", 0), ("2", 2_000_000_000), ("1.5", 1_500_000_000), ("0.25", 250_000_000)]
        {
            assert_eq!(parse_cpus(text), Some(nano), "{text}");
        }
        for text in ["", ".", "1.", "-1", "1e3", "0.0001", "4096", "1.5.2"] {
            assert_eq!(parse_cpus(text), None, "{text}");
        }
    }
}
