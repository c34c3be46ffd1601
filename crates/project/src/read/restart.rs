//! When a service is started again.

use super::fields::{Fields, did_you_mean, entries, scalar, string};
use crate::problem::Problems;
use crate::shape::{BACKOFF, RESTARTS};
use crate::{Backoff, Restart};
use yaml::Scalar;

pub(super) fn restart(fields: &Fields<'_>, problems: &mut Problems) -> Restart {
    let Some((node, at)) = fields.get("restart") else { return Restart::OnFailure };
    match string(node) {
        Some("always") => Restart::Always,
        Some("on-failure") => Restart::OnFailure,
        Some("never") => Restart::Never,
        other => {
            let message = format!("must be one of {}", RESTARTS.join(", "));
            let hint = other.and_then(|word| did_you_mean(word, RESTARTS));
            match hint {
                Some(hint) => problems.error_hint("Y017", node.place, at.path(), &message, &hint),
                None => problems.error("Y017", node.place, at.path(), &message),
            }
            Restart::OnFailure
        }
    }
}

pub(super) fn backoff(fields: &Fields<'_>, problems: &mut Problems) -> Backoff {
    let plain = Backoff::default();
    let Some((node, at)) = fields.get("backoff") else { return plain };
    if entries(node).is_none() {
        let message = format!("must be a mapping, not {}", node.what());
        problems.error("Y018", node.place, at.path(), &message);
        return plain;
    }
    let fields = Fields::new(node, at.clone(), BACKOFF);
    fields.warn_unknown(problems);
    let mut time = |key| fields.millis_or(key, "Y018", problems);
    let initial = time("initial_ms");
    let max = time("max_ms");
    let reset_after = time("reset_after_ms");
    let attempts = fields.int("max_attempts", "Y018", problems);
    let factor = factor(&fields, plain.factor, problems);
    if max < initial {
        let message = format!(
            "max_ms ({}) must not be less than initial_ms ({})",
            max.as_millis(),
            initial.as_millis()
        );
        problems.error("Y018", node.place, at.path(), &message);
    }
    let max_attempts = attempts.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    Backoff { initial, max, factor, max_attempts, reset_after }
}

fn factor(fields: &Fields<'_>, otherwise: f64, problems: &mut Problems) -> f64 {
    let Some((node, at)) = fields.get("factor") else { return otherwise };
    match scalar(node).and_then(Scalar::number) {
        Some(factor) if factor.is_finite() && factor >= 1.0 => factor,
        _ => {
            problems.error("Y018", node.place, at.path(), "must be a number of at least 1");
            otherwise
        }
    }
}
