use super::*;
use crate::policy::HeaderRule;
use approvals::BoxFuture;
use std::collections::HashMap;
use std::sync::Mutex;

/// Values by id, and what was asked for.
#[derive(Default)]
struct Store {
    values: HashMap<&'static str, Result<&'static str, SecretFault>>,
    asked: Mutex<Vec<String>>,
}

impl Secrets for Store {
    fn resolve<'a>(
        &'a self,
        id: &'a SecretId,
        _: &'a BoxId,
        _: &'a HostName,
    ) -> BoxFuture<'a, Result<secrets::Value, SecretFault>> {
        self.asked.lock().unwrap().push(id.to_string());
        let found = self.values.get(id.as_str()).cloned();
        Box::pin(async move {
            match found {
                Some(Ok(value)) => Ok(secrets::Value::new(value.into())),
                Some(Err(fault)) => Err(fault),
                None => Err(SecretFault::NotFound(id.clone())),
            }
        })
    }
}

fn id(text: &str) -> SecretId {
    text.parse().unwrap()
}

fn rule(name: &str, secret: &str, how: How) -> HeaderRule {
    HeaderRule { name: name.into(), secret: id(secret), how }
}

fn transform(headers: Vec<HeaderRule>, on_existing: OnExisting) -> Transform {
    Transform { headers, on_existing }
}

const FAKE: &str = "ghp_agentboxABCDEFGHIJKLMNOPQRSTUVWX";

async fn stage(
    store: &Store,
    transform: &Transform,
    headers: &HeaderMap,
) -> Result<HeaderMap, (InjectionFault, String)> {
    let placeholders = [Placeholder { secret: id("ex.token"), value: FAKE.into() }];
    let injection = Injection {
        transform,
        secrets: store,
        box_id: &"b0000000a".parse().unwrap(),
        host: &HostName::parse("api.ex.com").unwrap(),
        scheme: Scheme::Https,
        placeholders: &placeholders,
        limit: Duration::from_secs(5),
    };
    let staged = injection.stage(headers).await.map_err(|f| (f.fault, f.detail))?;
    let mut headers = headers.clone();
    staged.apply(&mut headers);
    Ok(headers)
}

fn with(name: &'static str, values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn store() -> Store {
    Store { values: [("ex.token", Ok("real-value"))].into(), ..Store::default() }
}

#[tokio::test]
async fn values_are_put_into_words() {
    let before = || "token ".to_owned();
    for (how, wanted) in [
        (How::Bearer, "Bearer real-value"),
        (How::Raw, "real-value"),
        (
            How::Basic { username: "x-access-token".into() },
            "Basic eC1hY2Nlc3MtdG9rZW46cmVhbC12YWx1ZQ==",
        ),
        (How::Format { before: before(), after: "!".into() }, "token real-value!"),
    ] {
        let transform = transform(vec![rule("authorization", "ex.token", how)], OnExisting::Fail);
        let headers = stage(&store(), &transform, &HeaderMap::new()).await.unwrap();
        assert_eq!(headers["authorization"], wanted);
        assert!(headers["authorization"].is_sensitive());
    }
}

#[tokio::test]
async fn egress_12_27_a_header_that_is_there_ends_it_before_any_credential_is_read() {
    let store = store();
    let bearer = rule("authorization", "ex.token", How::Bearer);
    let transform = transform(vec![bearer], OnExisting::Fail);
    let (fault, detail) =
        stage(&store, &transform, &with("authorization", &["x"])).await.unwrap_err();
    assert_eq!(fault, InjectionFault::ExistingHeaderPresent);
    assert_eq!(detail, "authorization");
    assert!(store.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn egress_12_28_replacing_leaves_one_header() {
    let bearer = || vec![rule("authorization", "ex.token", How::Bearer)];
    let replace = transform(bearer(), OnExisting::Replace);
    let headers = stage(&store(), &replace, &with("authorization", &["x", "y"])).await.unwrap();
    let all: Vec<_> = headers.get_all("authorization").iter().collect();
    assert_eq!(all, ["Bearer real-value"]);

    let careful = transform(bearer(), OnExisting::ReplacePlaceholder);
    let basic = format!("Basic {}", STANDARD.encode(format!("x-access-token:{FAKE}")));
    for fake in [FAKE.to_owned(), format!("Bearer {FAKE}"), basic] {
        let headers = stage(&store(), &careful, &with("authorization", &[&fake])).await.unwrap();
        assert_eq!(headers["authorization"], "Bearer real-value");
    }
    for other in [&["x"][..], &[FAKE, "x"], &["ghp_agentbox"]] {
        let store = store();
        let (fault, _) = stage(&store, &careful, &with("authorization", other)).await.unwrap_err();
        assert_eq!(fault, InjectionFault::ExistingHeaderPresent);
        assert!(store.asked.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn egress_12_29_all_credentials_or_none() {
    let rules = vec![
        rule("authorization", "ex.token", How::Bearer),
        rule("x-api-key", "ex.missing", How::Raw),
    ];
    let (fault, detail) =
        stage(&store(), &transform(rules, OnExisting::Fail), &HeaderMap::new()).await.unwrap_err();
    assert_eq!(fault, InjectionFault::SecretResolutionFailed);
    assert_eq!(detail, "ex.missing is not stored");
}

#[tokio::test]
async fn egress_12_38_faults_of_the_store_have_their_words() {
    let binding = SecretFault::HostBinding { id: id("ex.token"), host: "api.ex.com".into() };
    for (given, wanted) in [
        (SecretFault::Unavailable("locked".into()), InjectionFault::SecretResolverUnavailable),
        (SecretFault::Unusable("no UTF-8".into()), InjectionFault::SecretResolutionFailed),
        (binding, InjectionFault::SecretHostBinding),
    ] {
        let store = Store { values: [("ex.token", Err(given))].into(), ..Store::default() };
        let rules = vec![rule("authorization", "ex.token", How::Bearer)];
        let transform = transform(rules, OnExisting::Fail);
        let (fault, detail) = stage(&store, &transform, &HeaderMap::new()).await.unwrap_err();
        assert_eq!(fault, wanted);
        assert!(detail.contains("ex.token"), "{detail}");
    }
}

#[tokio::test]
async fn what_no_header_can_hold_is_not_put_in() {
    for bad in ["a\nb", "a\rb", "a\0b", "caf\u{e9}", "a\u{7f}"] {
        let store = Store { values: [("ex.token", Ok(bad))].into(), ..Store::default() };
        let rules = vec![rule("authorization", "ex.token", How::Raw)];
        let transform = transform(rules, OnExisting::Fail);
        let (fault, detail) = stage(&store, &transform, &HeaderMap::new()).await.unwrap_err();
        assert_eq!(fault, InjectionFault::TransformFailed);
        assert!(!detail.contains(bad));
    }
}
