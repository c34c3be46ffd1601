//! A policy written out: for people, with the lines that made it, and what a box may read of it.
//!
//! What a box reads is chosen field by field, never by leaving fields out: no credential's name, no
//! origin, nothing of other boxes can slip in with a new field.

use crate::policy::{
    Action, Denial, HostPattern, How, OnExisting, PathKind, Policy, Record, Rule, Tls, Unmatched,
};
use protocol::egress::PolicyForm;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

impl Policy {
    /// YAML, the same for the same policy.
    pub fn to_yaml(&self, form: PolicyForm) -> String {
        let mut text = String::new();
        if form != PolicyForm::Public && self.observe {
            text.push_str("# Only observed: what this does not allow passes, too.\n");
        }
        let unmatched = match self.unmatched {
            Unmatched::Deny => "deny",
            Unmatched::Ask => "ask",
        };
        text.push_str(&format!("version: 1\ndefaults: {{unmatched: {unmatched}}}\n"));
        text.push_str(if self.records.is_empty() { "domains: []\n" } else { "domains:\n" });
        for record in &self.records {
            record_to(&mut text, record, form);
        }
        if form != PolicyForm::Public && !self.deny.is_empty() {
            text.push_str("deny:\n");
            self.deny.iter().for_each(|denial| denial_to(&mut text, denial, form));
        }
        text
    }

    /// The same for two policies that say the same.
    pub fn digest(&self) -> String {
        let text = self.to_yaml(PolicyForm::Origins);
        Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// How many hosts it names, exactly and by wildcards.
    pub fn counts(&self) -> (usize, usize) {
        let wild = self.records.iter().filter(|record| record.host.is_wildcard()).count();
        (self.records.len() - wild, wild)
    }
}

fn record_to(text: &mut String, record: &Record, form: PolicyForm) {
    text.push_str(&format!("- host: {}\n", quoted(&record.host)));
    if record.tls == Tls::Passthrough {
        text.push_str("  tls: passthrough\n");
    }
    if record.allow_private && form != PolicyForm::Public {
        text.push_str("  allow_private: true\n");
    }
    text.push_str("  rules:\n");
    for rule in &record.rules {
        line(text, "  - ", rule, form);
    }
}

fn denial_to(text: &mut String, denial: &Denial, form: PolicyForm) {
    text.push_str(&format!("- host: {}\n", quoted(&denial.host)));
    if let Some(reason) = &denial.reason {
        text.push_str(&format!("  reason: {}\n", Value::String(reason.clone())));
    }
    if form == PolicyForm::Origins {
        text.push_str(&format!("  # {}\n", denial.origin));
    }
    if let Some(rules) = &denial.rules {
        text.push_str("  rules:\n");
        for rule in rules {
            line(text, "  - ", rule, form);
        }
    }
}

fn line(text: &mut String, before: &str, rule: &Rule, form: PolicyForm) {
    // JSON is YAML, and its strings need no rules of their own.
    text.push_str(&format!("{before}{}", Value::Object(fields(rule, form))));
    if form == PolicyForm::Origins {
        text.push_str(&format!(" # {}", rule.origin));
    }
    text.push('\n');
}

fn quoted(host: &HostPattern) -> Value {
    Value::String(host.to_string())
}

fn fields(rule: &Rule, form: PolicyForm) -> Map<String, Value> {
    let mut all = Map::new();
    if rule.action != Action::Allow {
        all.insert("action".into(), json!(word(rule.action)));
    }
    let schemes: Vec<&str> = rule.schemes.iter().map(|scheme| scheme.as_str()).collect();
    all.insert("schemes".into(), json!(schemes));
    if let Some(methods) = &rule.methods {
        all.insert("methods".into(), json!(methods));
    }
    if let Some(path) = &rule.path {
        let kind = match path.kind {
            PathKind::Exact => "exact",
            PathKind::Prefix => "prefix",
            PathKind::Pattern => "pattern",
        };
        let mut said = Map::from_iter([(kind.to_owned(), json!(path.text))]);
        if path.ignore_case {
            said.insert("case".into(), json!("insensitive"));
        }
        all.insert("path".into(), Value::Object(said));
    }
    if let Some(query) = &rule.query {
        all.insert("query".into(), json!({ "exact": query }));
    }
    all.insert("ports".into(), json!(rule.ports));
    if rule.websocket {
        all.insert("websocket".into(), json!(true));
    }
    if form == PolicyForm::Public {
        return all;
    }
    if let Some(most) = rule.max_body {
        all.insert("max_body".into(), json!(most));
    }
    if let Some(push) = &rule.push {
        all.insert(
            "push".into(),
            json!({
                "refs": push.refs, "allow_delete": push.allow_delete,
                "allow_create": push.allow_create,
            }),
        );
    }
    if let Some(transform) = &rule.transform {
        let headers = transform.headers.iter().map(|header| {
            let how = match &header.how {
                How::Bearer | How::Raw => json!({ "type": header.how.word() }),
                How::Basic { username } => json!({ "type": "basic", "username": username }),
                How::Format { before, after } => {
                    json!({ "type": "format", "template": format!("{before}{{secret}}{after}") })
                }
            };
            (header.name.clone(), json!({ "secret": header.secret, "transform": how }))
        });
        let headers: Map<String, Value> = headers.collect();
        let existing = match transform.on_existing {
            OnExisting::Fail => "fail",
            OnExisting::Replace => "replace",
            OnExisting::ReplacePlaceholder => "replace_placeholder",
        };
        let request = json!({ "headers": headers, "on_existing_header": existing });
        all.insert("transform".into(), json!({ "request": request }));
    }
    all
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
domains:
  - docs.example.com
  - host: api.example.com
    rules: [{methods: [GET], path: {prefix: /v1/}}]
    transform: {request: {headers: {Authorization: {secret: example.api, transform: {type: bearer}}}}}
deny: [{host: '*.paste.example', reason: no paste sites}]
";

    #[test]
    fn what_a_box_reads_of_its_policy_names_no_credential_and_no_line() {
        let policy = Policy::from_yaml(TEXT).unwrap();
        let public = policy.to_yaml(PolicyForm::Public);
        assert!(public.contains("api.example.com") && public.contains("\"/v1/\""), "{public}");
        for hidden in ["example.api", "transform", "egress.yaml", "paste", "metadata"] {
            assert!(!public.contains(hidden), "{hidden} in {public}");
        }
    }

    #[test]
    fn people_read_all_of_it_with_the_lines_that_made_it() {
        let policy = Policy::from_yaml(TEXT).unwrap();
        let origins = policy.to_yaml(PolicyForm::Origins);
        assert!(origins.contains("# global:egress.yaml:5"), "{origins}");
        assert!(origins.contains("\"secret\":\"example.api\""), "{origins}");
        assert!(origins.contains("no paste sites"), "{origins}");
        assert!(!policy.to_yaml(PolicyForm::Rendered).contains("egress.yaml"));
    }

    #[test]
    fn egress_12_60_the_same_layers_are_the_same_bytes() {
        let [one, two] = [(), ()].map(|()| Policy::from_yaml(TEXT).unwrap());
        assert_eq!(one.to_yaml(PolicyForm::Origins), two.to_yaml(PolicyForm::Origins));
        assert_eq!(one.digest(), two.digest());
        let other = Policy::from_yaml("domains: [docs.example.com]").unwrap();
        assert_ne!(one.digest(), other.digest());
    }
}
