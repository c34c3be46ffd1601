//! Credentials put into a request on its way out.
//!
//! In this order, and nothing is changed before the last step: the rule says so and the connection is
//! secure; no header of the box's own stands in the way; every credential was found and fits a header.
//! Then what stood there is removed and the credentials are set.

use crate::host_name::HostName;
use crate::policy::{How, OnExisting, Transform};
use crate::ports::{SecretFault, Secrets};
use crate::proxy::Placeholder;
use crate::request::Scheme;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use protocol::egress::{Injected, InjectionFault};
use protocol::{BoxId, SecretId};
use std::time::Duration;
use zeroize::Zeroizing;

/// Why nothing was put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub fault: InjectionFault,
    /// The header, or the credential and what is wrong with it.
    pub detail: String,
}

fn fault(fault: InjectionFault, detail: impl Into<String>) -> Fault {
    Fault { fault, detail: detail.into() }
}

/// For whom, and where to.
pub(crate) struct Injection<'a> {
    pub transform: &'a Transform,
    pub secrets: &'a dyn Secrets,
    pub box_id: &'a BoxId,
    pub host: &'a HostName,
    pub scheme: Scheme,
    pub placeholders: &'a [Placeholder],
    pub limit: Duration,
}

/// Credentials that are ready to be put in.
pub(crate) struct Staged {
    headers: Vec<(HeaderName, HeaderValue)>,
    pub used: Vec<Used>,
    pub notes: Vec<Injected>,
}

/// A value, and what was made of it as far as it is another text.
pub(crate) struct Used {
    pub secret: SecretId,
    pub value: secrets::Value,
    pub payload: Option<Zeroizing<String>>,
}

impl Injection<'_> {
    pub async fn stage(&self, headers: &HeaderMap) -> Result<Staged, Fault> {
        if self.scheme != Scheme::Https {
            return Err(fault(InjectionFault::InsecureScheme, ""));
        }
        let names = self.names()?;
        for (name, rule) in names.iter().zip(&self.transform.headers) {
            self.check_existing(headers, name, &rule.secret)?;
        }
        let mut staged = Staged { headers: Vec::new(), used: Vec::new(), notes: Vec::new() };
        for (name, rule) in names.into_iter().zip(&self.transform.headers) {
            let value = self.resolve(&rule.secret).await?;
            let (text, payload) = render(&rule.how, value.expose());
            let shown =
                |why| fault(InjectionFault::TransformFailed, format!("{} {why}", rule.secret));
            if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
                return Err(shown("has characters that no header can hold"));
            }
            let mut header = HeaderValue::from_str(&text).map_err(|_| shown("fits no header"))?;
            header.set_sensitive(true);
            staged.notes.push(Injected {
                header: name.to_string(),
                secret: rule.secret.clone(),
                transform: rule.how.word().to_owned(),
            });
            staged.headers.push((name, header));
            staged.used.push(Used { secret: rule.secret.clone(), value, payload });
        }
        Ok(staged)
    }

    fn names(&self) -> Result<Vec<HeaderName>, Fault> {
        let name = |text: &str| {
            let failed = |_| fault(InjectionFault::TransformFailed, format!("{text} is no header"));
            HeaderName::from_bytes(text.as_bytes()).map_err(failed)
        };
        self.transform.headers.iter().map(|rule| name(&rule.name)).collect()
    }

    fn check_existing(
        &self,
        headers: &HeaderMap,
        name: &HeaderName,
        secret: &SecretId,
    ) -> Result<(), Fault> {
        let mut present = headers.get_all(name).iter();
        let may_go = match self.transform.on_existing {
            OnExisting::Replace => true,
            OnExisting::Fail => present.next().is_none(),
            OnExisting::ReplacePlaceholder => {
                present.all(|value| self.is_placeholder(value, secret))
            }
        };
        if may_go {
            return Ok(());
        }
        Err(fault(InjectionFault::ExistingHeaderPresent, name.as_str()))
    }

    /// The value is, or holds, what this box was given in place of the credential.
    fn is_placeholder(&self, value: &HeaderValue, secret: &SecretId) -> bool {
        let text = value.as_bytes();
        let decoded = basic(text);
        let holds = |text: &[u8], fake: &str| {
            !fake.is_empty() && text.windows(fake.len()).any(|part| part == fake.as_bytes())
        };
        let of_this = self.placeholders.iter().filter(|fake| fake.secret == *secret);
        of_this.map(|fake| fake.value.as_str()).any(|fake| {
            holds(text, fake) || decoded.as_deref().is_some_and(|text| holds(text, fake))
        })
    }

    async fn resolve(&self, id: &SecretId) -> Result<secrets::Value, Fault> {
        let wait = self.secrets.resolve(id, self.box_id, self.host);
        let late = |_| {
            let detail = format!("{id}: the store of credentials does not answer");
            fault(InjectionFault::SecretResolverUnavailable, detail)
        };
        let found = tokio::time::timeout(self.limit, wait).await.map_err(late)?;
        found.map_err(|e| {
            let word = match &e {
                SecretFault::Unavailable(_) => InjectionFault::SecretResolverUnavailable,
                SecretFault::NotFound(_) | SecretFault::Unusable(_) => {
                    InjectionFault::SecretResolutionFailed
                }
                SecretFault::HostBinding { .. } => InjectionFault::SecretHostBinding,
            };
            let text = e.to_string();
            let names_it = text.contains(id.as_str());
            fault(word, if names_it { text } else { format!("{id}: {text}") })
        })
    }
}

impl Staged {
    /// Takes away what stands there and puts the credentials in.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for (name, _) in &self.headers {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
    }

    pub fn names(&self) -> Vec<HeaderName> {
        self.headers.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// The text of the header, and what of it is encoded.
fn render(how: &How, value: &str) -> (Zeroizing<String>, Option<Zeroizing<String>>) {
    let (text, payload) = match how {
        How::Bearer => (format!("Bearer {value}"), None),
        How::Raw => (value.to_owned(), None),
        How::Format { before, after } => (format!("{before}{value}{after}"), None),
        How::Basic { username } => {
            let payload = Zeroizing::new(format!("{username}:{value}"));
            (format!("Basic {}", STANDARD.encode(payload.as_bytes())), Some(payload))
        }
    };
    (Zeroizing::new(text), payload)
}

/// What is in a `Basic` header.
fn basic(value: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let rest = rest.trim().trim_end_matches('=');
    let rest = scheme.eq_ignore_ascii_case("basic").then_some(rest)?;
    STANDARD_NO_PAD.decode(rest).ok()
}

#[cfg(test)]
mod tests;
