//! Whatever is in a policy, reading it ends; the same text makes the same policy to the last byte, and what
//! it says of any request is said again, by a rule that is there and that fits.
//!
//! Up to the first line `---` the policy, after it requests: a method and an address on each line.
#![no_main]

use egress::check::read;
use egress::policy::{Inputs, Layer, LayerText, Policy, RuleRef, Verdict, render};
use egress::request::{CanonicalRequest, Scheme};
use libfuzzer_sys::fuzz_target;
use protocol::egress::{EgressMode, PolicyForm};

const FORMS: [PolicyForm; 3] = [PolicyForm::Rendered, PolicyForm::Origins, PolicyForm::Public];
/// Of which no policy may let a box have anything.
const NEVER: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "a.localhost"];

fn inputs(text: &str, mode: EgressMode, layer: Layer) -> Inputs {
    let layers = vec![LayerText { layer, file: "egress.yaml".into(), text: text.into() }];
    Inputs { mode, agents: Vec::new(), layers }
}

fn check_rule(policy: &Policy, at: RuleRef, request: &CanonicalRequest) {
    let (record, rule) = policy.rule(at).expect("a rule that is there");
    assert!(record.host.covers(&request.host), "{record:?} {request:?}");
    assert!(rule.fits(request) && (rule.websocket || !request.websocket), "{rule:?} {request:?}");
}

fn check_request(policy: &Policy, request: &CanonicalRequest) {
    let verdict = policy.decide(request);
    assert_eq!(verdict, policy.decide(request));
    match verdict {
        Verdict::Allow(at) => check_rule(policy, at, request),
        Verdict::Observe(_) => assert!(policy.observe),
        Verdict::Ask(_) | Verdict::Deny(..) => {}
    }
    if NEVER.contains(&request.host.as_str()) {
        assert!(matches!(verdict, Verdict::Deny(..)), "{verdict:?} {request:?}");
    }
    policy.at_connect(&request.host, request.port);
    policy.would(request);
}

fuzz_target!(|text: &str| {
    let (text, requests) = text.split_once("\n---\n").unwrap_or((text, ""));
    let modes = [EgressMode::Open, EgressMode::Balanced, EgressMode::Observe];
    for (mode, layer) in modes.into_iter().zip([Layer::Global, Layer::Repository, Layer::Box]) {
        let inputs = inputs(text, mode, layer);
        let (one, two) = (render(&inputs), render(&inputs));
        assert_eq!(one, two);
        let policy = match one {
            Ok(rendered) => rendered.policy,
            Err(problems) => {
                assert!(!problems.0.is_empty());
                for line in problems.to_string().lines() {
                    assert!(!line.chars().any(char::is_control) && line.len() < 16 * 1024, "{line:?}");
                }
                continue;
            }
        };
        let two = two.expect("the same as before").policy;
        for form in FORMS {
            assert_eq!(policy.to_yaml(form), two.to_yaml(form));
        }
        // A box reads no name of a credential, and no line of a file.
        let public = policy.to_yaml(PolicyForm::Public);
        let rules = policy.records.iter().flat_map(|record| &record.rules);
        assert!(!public.contains("\"transform\"") && !public.contains(" # "), "{public}");
        for rule in rules {
            assert!(rule.transform.is_none() || !rule.schemes.contains(&Scheme::Http), "{rule:?}");
        }
        let own = ["GET https://example.com/", "POST https://github.com/a/b.git/git-receive-pack"];
        let never = NEVER.map(|host| format!("GET https://{host}/"));
        for line in requests.lines().take(32).chain(own).chain(never.iter().map(String::as_str)) {
            let Some((method, url)) = line.split_once(' ') else { continue };
            let Ok(request) = read(url, method) else { continue };
            check_request(&policy, &request);
            check_request(&policy, &CanonicalRequest { websocket: true, ..request });
        }
    }
});
