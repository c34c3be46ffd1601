//! What a box holds in place of a credential: made for this box and this credential alone.
//!
//! Worked out from a key of this installation and never stored, so it is the same after a restart, and
//! nobody who has one can tell another. It begins like the real thing, because some programs look.

use crate::core::Core;
use egress::policy::{Policy, Shim, ShimKind};
use egress::proxy::Placeholder;
use protocol::control::{ControlError, ErrorCode};
use protocol::{BoxId, SecretId};
use ring::hmac;
use std::collections::BTreeMap;

const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const RANDOM: usize = 24;

/// Those that a policy has a use for.
pub fn of(key: &[u8; 32], id: &BoxId, policy: &Policy) -> Vec<Placeholder> {
    let mut all: BTreeMap<&SecretId, &Shim> = BTreeMap::new();
    for shim in &policy.shims {
        for secret in &shim.secrets {
            all.entry(secret).or_insert(shim);
        }
    }
    let one = |(secret, shim): (&SecretId, &Shim)| Placeholder {
        secret: secret.clone(),
        value: value(key, id, secret, prefix(shim)),
    };
    all.into_iter().map(one).collect()
}

/// Variables for programs that will not start without a credential.
pub fn variables(key: &[u8; 32], id: &BoxId, policy: &Policy) -> BTreeMap<String, String> {
    let fakes = of(key, id, policy);
    let named = policy.shims.iter().filter_map(|shim| {
        let ShimKind::Env { name } = &shim.kind else { return None };
        let fake = fakes.iter().find(|fake| shim.secrets.contains(&fake.secret))?;
        Some((name.clone(), fake.value.clone()))
    });
    named.collect()
}

fn prefix(shim: &Shim) -> &'static str {
    match &shim.kind {
        ShimKind::GitAskpass { .. } => "ghp_",
        ShimKind::Env { name } => match name.as_str() {
            "ANTHROPIC_API_KEY" => "sk-ant-api03-",
            "CLAUDE_CODE_OAUTH_TOKEN" => "sk-ant-oat01-",
            "OPENAI_API_KEY" => "sk-",
            "GEMINI_API_KEY" => "AIza",
            _ => "",
        },
    }
}

fn value(key: &[u8; 32], id: &BoxId, secret: &SecretId, prefix: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, format!("{id}\n{secret}").as_bytes());
    let letters =
        tag.as_ref().iter().take(RANDOM).map(|b| char::from(LETTERS[usize::from(b % 32)]));
    format!("{prefix}agentbox{}", letters.collect::<String>())
}

impl Core {
    /// The key of this installation; made when it is first needed.
    pub(crate) async fn placeholder_key(&self) -> Result<[u8; 32], ControlError> {
        let fresh: [u8; 32] = crate::create::random()?;
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let text = self.store.placeholder_key(hex(&fresh)).await?;
        let bad = || ControlError::new(ErrorCode::Failed, "the key of placeholders is damaged");
        let mut key = [0; 32];
        for (at, byte) in key.iter_mut().enumerate() {
            let digits = text.get(2 * at..2 * at + 2).ok_or_else(bad)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(key)
    }

    /// Made-up credentials for an agent of a box, as its policy has them put right on the way out.
    pub(crate) async fn made_up(
        &self,
        record: &boxes::Record,
    ) -> Result<BTreeMap<String, String>, ControlError> {
        let Some(policy) = self.policy_of(&record.id) else { return Ok(BTreeMap::new()) };
        Ok(variables(&self.placeholder_key().await?, &record.id, &policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_differ_by_box_credential_and_installation_and_stay() {
        let ids: [BoxId; 2] = ["b00000001".parse().unwrap(), "b00000002".parse().unwrap()];
        let secrets: [SecretId; 2] = ["a.key".parse().unwrap(), "b.key".parse().unwrap()];
        let all: std::collections::HashSet<String> = [[1; 32], [2; 32]]
            .iter()
            .flat_map(|key| ids.iter().map(move |id| (key, id)))
            .flat_map(|(key, id)| secrets.iter().map(move |secret| value(key, id, secret, "sk-")))
            .collect();
        assert_eq!(all.len(), 8);
        let one = value(&[1; 32], &ids[0], &secrets[0], "sk-");
        assert!(all.contains(&one));
        assert_eq!(one.len(), "sk-agentbox".len() + RANDOM);
    }

    #[test]
    fn an_agent_gets_the_variable_its_service_knows() {
        let text = "services: [{name: claude, auth: {secret: anthropic.key, type: api_key, client_shim: {kind: env}}}]";
        let policy = Policy::from_yaml(text).unwrap_or_else(|e| panic!("{e}"));
        let id: BoxId = "b00000001".parse().unwrap();
        let env = variables(&[7; 32], &id, &policy);
        assert!(env["ANTHROPIC_API_KEY"].starts_with("sk-ant-api03-agentbox"), "{env:?}");
    }
}
