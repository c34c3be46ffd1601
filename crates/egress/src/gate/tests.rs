use super::*;
use approvals::{Draft, Journal, JournalError, Sink, Wanted};
use protocol::BoxName;
use protocol::question::{Grant, Question, Remember, Surface, Verdict};
use protocol::{GrantId, QuestionId};

const BOX: &str = "b00000001";

/// A journal that keeps nothing, but counts who was refused.
#[derive(Default)]
struct Notes(Mutex<usize>);

impl Journal for Notes {
    fn asked<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn resolved<'a>(
        &'a self,
        _: &'a QuestionId,
        _: &'a Outcome,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn refused<'a>(
        &'a self,
        _: &'a Draft,
        _: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        *self.0.lock().unwrap() += 1;
        Box::pin(async { Ok(()) })
    }
    fn grant_for<'a>(
        &'a self,
        _: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        // A rule of the relay's kind must never answer for a request.
        Box::pin(async {
            Ok(Some(Grant {
                id: GrantId::from_bytes([7; 16]),
                reach: Reach::Everywhere,
                box_id: BOX.parse().unwrap(),
                box_name: "fix-login".parse().unwrap(),
                project: String::new(),
                project_root: String::new(),
                method: METHOD.into(),
                scope: String::new(),
                sentence: String::new(),
                created_at: 0,
                expires_at: 1,
            }))
        })
    }
    fn remember<'a>(&'a self, _: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>> {
        panic!("the gate keeps its own rules")
    }
}

#[derive(Default)]
struct Screen {
    shown: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
    away: std::sync::atomic::AtomicBool,
}

impl Sink for Screen {
    fn show(&self, question: &Question) {
        self.shown.lock().unwrap().push(question.title.clone());
    }
    fn withdraw(&self, _: &Question, _: &Outcome) {}
    fn is_attached(&self) -> bool {
        !self.away.load(std::sync::atomic::Ordering::SeqCst)
    }
    fn note(&self, _: &BoxName, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

type KeptRule = (NewRule, Reach, Duration, String);

#[derive(Default)]
struct House {
    kept: Mutex<Vec<KeptRule>>,
    broken: bool,
}

impl Keep for House {
    fn asker(&self, id: &BoxId) -> Option<Asker> {
        id.as_str().starts_with('b').then(|| Asker {
            box_id: id.clone(),
            box_name: "fix-login".parse().unwrap(),
            project: "shop".into(),
            project_root: "/home/ada/shop".into(),
        })
    }
    fn when_nobody(&self, _: &BoxId) -> WhenNobody {
        WhenNobody::Deny
    }
    fn is_bound<'a>(
        &'a self,
        secret: &'a SecretId,
        _: &'a BoxId,
        _: &'a HostName,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move { secret.as_str() == "example.bound" })
    }
    fn widens(&self, _: &BoxId, _: &Ask, rule: &NewRule) -> Vec<String> {
        if rule.path.is_none() { vec!["every path of it".into()] } else { Vec::new() }
    }
    fn in_yaml(&self, rule: &NewRule) -> String {
        format!("{{host: {}}}", rule.host)
    }
    fn keep<'a>(
        &'a self,
        _: &'a BoxId,
        rule: &'a NewRule,
        reach: Reach,
        time: Duration,
        sentence: String,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if self.broken {
                return Err("disk full".into());
            }
            self.kept.lock().unwrap().push((rule.clone(), reach, time, sentence));
            Ok(())
        })
    }
}

struct Office {
    desk: Desk,
    broker: Broker,
    screen: Arc<Screen>,
    house: Arc<House>,
    notes: Arc<Notes>,
}

impl Office {
    fn open() -> Self {
        Self::with(House::default())
    }

    fn with(house: House) -> Self {
        let (notes, screen) = (Arc::new(Notes::default()), Arc::new(Screen::default()));
        let broker = Broker::new(notes.clone(), approvals::Limits::default());
        broker.add_sink(screen.clone());
        let house = Arc::new(house);
        let desk = Desk::new(broker.clone(), house.clone(), Limits::default());
        Self { desk, broker, screen, house, notes }
    }

    fn ask(&self, ask: Ask) -> tokio::task::JoinHandle<Answer> {
        let desk = self.desk.clone();
        tokio::spawn(async move { desk.ask(ask).await })
    }

    async fn question(&self) -> Question {
        settled().await;
        self.broker.pending().first().cloned().expect("a question is open")
    }

    async fn say(&self, verdict: Verdict) {
        let q = self.question().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        self.broker.answer(&q.id, &q.digest, verdict, Surface::Window).unwrap();
    }
}

/// Every task has got as far as it can.
async fn settled() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn get(path: &str) -> Ask {
    Ask {
        box_id: BOX.parse().unwrap(),
        scheme: Scheme::Https,
        host: HostName::parse("api.example.com").unwrap(),
        port: 443,
        method: "GET".into(),
        path: path.into(),
        length: Some(0),
        websocket: false,
        secrets: Vec::new(),
        rule: None,
        why: None,
    }
}

fn post(path: &str) -> Ask {
    Ask { method: "POST".into(), length: Some(12), ..get(path) }
}

fn remember(reach: Reach, breadth: Breadth) -> Verdict {
    Verdict::Remember { reach, breadth, seconds: Remember::ALWAYS }
}

const ONCE: Answer = Answer::Allowed(Told::Once);

#[tokio::test(start_paused = true)]
async fn egress_12_46_once_no_and_no_answer() {
    let office = Office::open();
    let once = office.ask(post("/v1/jobs"));
    office.say(Verdict::AllowOnce).await;
    assert_eq!(once.await.unwrap(), ONCE);
    // The very same again, and nothing else, and not for ever.
    assert_eq!(office.ask(post("/v1/jobs")).await.unwrap(), ONCE);
    let longer = Ask { length: Some(13), ..post("/v1/jobs") };
    for other in [post("/v1/jobs?now=1"), longer, get("/v1/jobs?now=1")] {
        let other = office.ask(other);
        office.say(Verdict::Deny).await;
        assert_eq!(other.await.unwrap(), Answer::Denied(Told::Once));
    }
    tokio::time::advance(Duration::from_secs(5 * 60)).await;
    let late = office.ask(post("/v1/jobs"));
    settled().await;
    assert_eq!(office.broker.pending().len(), 1, "asked again after five minutes");
    tokio::time::advance(Duration::from_secs(121)).await;
    assert_eq!(late.await.unwrap(), Answer::Unanswered);
    assert!(office.broker.pending().is_empty());
}

#[tokio::test(start_paused = true)]
async fn egress_12_46_the_ninth_different_question_is_one_too_many() {
    let office = Office::open();
    let asking: Vec<_> = (0..8).map(|n| office.ask(post(&format!("/{n}")))).collect();
    settled().await;
    assert_eq!(office.broker.pending().len(), 8);
    assert_eq!(office.ask(post("/8")).await.unwrap(), Answer::TooMany);
    assert_eq!(office.screen.shown.lock().unwrap().len(), 1, "one of a box is on screen");
    for task in asking {
        task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn egress_12_47_fifty_at_once_are_one_question_and_one_yes_lets_all_through() {
    let office = Office::open();
    let asking: Vec<_> =
        (0..50).map(|n| office.ask(get(&format!("/simple/six/{n}.whl")))).collect();
    settled().await;
    assert_eq!(office.broker.pending().len(), 1);
    let q = office.question().await;
    let covers = q.evidence.facts.iter().find(|f| f.label == "A yes also covers").unwrap();
    assert!(covers.value.contains("api.example.com/simple/six/"), "{}", covers.value);
    office.say(Verdict::AllowOnce).await;
    for task in asking {
        assert_eq!(task.await.unwrap(), ONCE);
    }
    assert_eq!(office.screen.shown.lock().unwrap().len(), 1);
    // Each of them may be tried again; what nobody asked for may not.
    assert_eq!(office.ask(get("/simple/six/49.whl")).await.unwrap(), ONCE);
    let more = office.ask(get("/simple/six/50.whl"));
    settled().await;
    assert_eq!(office.broker.pending().len(), 1);
    more.abort();
}

#[tokio::test(start_paused = true)]
async fn what_sends_something_shares_no_question_with_another_address_method_or_box() {
    let office = Office::open();
    let other_box = Ask { box_id: "b00000002".parse().unwrap(), ..post("/a/b/c") };
    let asks = [
        post("/a/b/c"),
        post("/a/b/d"),
        post("/a/b/c?x=1"),
        Ask { method: "DELETE".into(), ..post("/a/b/c") },
        Ask { port: 8443, ..post("/a/b/c") },
        Ask { scheme: Scheme::Http, ..post("/a/b/c") },
        // With a body it does not only read.
        Ask { length: Some(9), ..get("/a/b/c") },
        other_box,
    ];
    let asking: Vec<_> = asks.into_iter().map(|ask| office.ask(ask)).collect();
    settled().await;
    assert_eq!(office.broker.pending().len(), 8);
    let same = office.ask(post("/a/b/c"));
    settled().await;
    assert_eq!(office.broker.pending().len(), 8);
    same.abort();
    for task in asking {
        task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_credential_makes_it_another_question() {
    let office = Office::open();
    let plain = office.ask(get("/v1/me"));
    office.say(Verdict::AllowOnce).await;
    assert_eq!(plain.await.unwrap(), ONCE);
    let with = office.ask(Ask { secrets: vec!["example.api".parse().unwrap()], ..get("/v1/me") });
    let q = office.question().await;
    assert!(q.warnings.iter().any(|w| w.contains("example.api")), "{:?}", q.warnings);
    assert!(!q.is_plain(), "no surface without the facts may offer a yes");
    with.abort();
}

#[tokio::test(start_paused = true)]
async fn a_program_that_left_keeps_its_question_for_half_a_minute() {
    let office = Office::open();
    let gone = office.ask(post("/v1/jobs"));
    settled().await;
    gone.abort();
    settled().await;
    tokio::time::advance(Duration::from_secs(29)).await;
    settled().await;
    assert_eq!(office.broker.pending().len(), 1);
    // It comes back and waits on: the same question.
    let back = office.ask(post("/v1/jobs"));
    settled().await;
    tokio::time::advance(Duration::from_secs(20)).await;
    settled().await;
    office.say(Verdict::AllowOnce).await;
    assert_eq!(back.await.unwrap(), ONCE);

    let gone = office.ask(post("/v1/other"));
    settled().await;
    gone.abort();
    settled().await;
    tokio::time::advance(Duration::from_secs(31)).await;
    settled().await;
    assert!(office.broker.pending().is_empty(), "withdrawn");
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_came_after_the_program_left_is_there_when_it_tries_again() {
    let office = Office::open();
    let gone = office.ask(post("/v1/jobs"));
    settled().await;
    gone.abort();
    settled().await;
    office.say(Verdict::AllowOnce).await;
    settled().await;
    assert_eq!(office.ask(post("/v1/jobs")).await.unwrap(), ONCE);
}

#[tokio::test(start_paused = true)]
async fn egress_12_49_an_answer_to_another_text_is_refused_and_the_request_stays_parked() {
    let office = Office::open();
    let asking = office.ask(post("/v1/jobs"));
    let q = office.question().await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let stale = "0".repeat(64);
    let answer = office.broker.answer(&q.id, &stale, Verdict::AllowOnce, Surface::Cli);
    assert_eq!(answer, Err(approvals::AnswerError::DigestMismatch));
    settled().await;
    assert!(!asking.is_finished());
    asking.abort();
}

#[tokio::test(start_paused = true)]
async fn rules_are_for_the_box_the_project_or_all_and_say_what_they_cover() {
    let office = Office::open();
    for (reach, breadth, told) in [
        (Reach::Box, Breadth::Exact, Told::ForBox),
        (Reach::Project, Breadth::Exact, Told::ForProject),
        (Reach::Everywhere, Breadth::Kind, Told::Always),
    ] {
        let asking = office.ask(get("/v1/jobs/17"));
        office.say(remember(reach, breadth)).await;
        assert_eq!(asking.await.unwrap(), Answer::Allowed(told));
    }
    let kept = office.house.kept.lock().unwrap().clone();
    let (near, _, _, sentence) = &kept[0];
    let folder = |text: &str| {
        Some(PathRule { kind: PathKind::Prefix, text: text.into(), ignore_case: false })
    };
    assert_eq!(near.path, folder("/v1/jobs/"));
    assert_eq!(sentence, "Let fix-login read below api.example.com/v1/jobs/");
    assert_eq!(kept[2].0.path, None);
    assert_eq!(
        kept[2].3,
        "Let every box read anything from api.example.com (wider: every path of it)"
    );
    assert!(kept.iter().all(|(rule, ..)| rule.methods.as_ref().unwrap().len() == 3));
}

#[tokio::test(start_paused = true)]
async fn what_sends_is_remembered_for_its_method_and_place() {
    let office = Office::open();
    let asking = office.ask(post("/v1/jobs"));
    office.say(remember(Reach::Box, Breadth::Exact)).await;
    asking.await.unwrap();
    let (rule, _, _, sentence) = office.house.kept.lock().unwrap()[0].clone();
    assert_eq!(rule.methods, Some(BTreeSet::from(["POST".to_owned()])));
    assert_eq!(rule.path.unwrap().kind, PathKind::Exact);
    assert_eq!(sentence, "Let fix-login send POST at api.example.com/v1/jobs");
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_not_bound_to_the_host_makes_no_lasting_rule() {
    let office = Office::open();
    let with = |id: &str| Ask { secrets: vec![id.parse().unwrap()], ..get("/v1/me") };
    let asking = office.ask(with("example.api"));
    let q = office.question().await;
    assert_eq!(q.remember.as_ref().unwrap().only, Some(Reach::Box));
    assert!(!q.evidence.facts.iter().any(|f| f.label.starts_with("Always")));
    tokio::time::advance(Duration::from_secs(1)).await;
    let wide = remember(Reach::Project, Breadth::Exact);
    let refused = office.broker.answer(&q.id, &q.digest, wide, Surface::Window);
    assert_eq!(refused, Err(approvals::AnswerError::NotRememberable));
    asking.abort();
    settled().await;
    let asking = office.ask(with("example.bound"));
    settled().await;
    let all = office.broker.pending();
    let q = all.last().unwrap();
    assert_eq!(q.remember.as_ref().unwrap().only, None);
    asking.abort();
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_cannot_be_kept_is_a_yes_for_once() {
    let office = Office::with(House { broken: true, ..House::default() });
    let asking = office.ask(get("/v1/jobs"));
    office.say(remember(Reach::Project, Breadth::Exact)).await;
    assert_eq!(asking.await.unwrap(), ONCE);
}

#[tokio::test(start_paused = true)]
async fn twenty_in_ten_minutes_are_enough_and_people_are_told_once() {
    let office = Office::open();
    for n in 0..20 {
        let asking = office.ask(post(&format!("/{n}")));
        office.say(Verdict::AllowOnce).await;
        asking.await.unwrap();
    }
    for n in 20..40 {
        assert_eq!(office.ask(post(&format!("/{n}"))).await.unwrap(), Answer::TooMany);
    }
    assert_eq!(office.screen.notes.lock().unwrap().len(), 1);
    assert_eq!(*office.notes.0.lock().unwrap(), 0, "a flood writes nothing down");
    tokio::time::advance(Duration::from_secs(10 * 60)).await;
    let asking = office.ask(post("/40"));
    office.say(Verdict::AllowOnce).await;
    assert_eq!(asking.await.unwrap(), ONCE);
}

#[tokio::test(start_paused = true)]
async fn nobody_there_is_a_no_at_once_and_is_not_written_down_a_thousand_times() {
    let office = Office::open();
    office.screen.away.store(true, std::sync::atomic::Ordering::SeqCst);
    for n in 0..1000 {
        let answer = office.ask(post(&format!("/{n}"))).await.unwrap();
        assert!(matches!(answer, Answer::Unanswered | Answer::TooMany), "{answer:?}");
    }
    assert_eq!(*office.notes.0.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_no_holds_for_a_moment_and_a_muted_box_is_not_asked_about() {
    let office = Office::open();
    let asking = office.ask(get("/a"));
    office.say(Verdict::Deny).await;
    assert_eq!(asking.await.unwrap(), Answer::Denied(Told::Once));
    assert_eq!(office.ask(get("/a")).await.unwrap(), Answer::Denied(Told::Once));
    tokio::time::advance(Duration::from_secs(31)).await;
    office.broker.mute(&BOX.parse().unwrap(), Some(Duration::from_secs(60)));
    assert_eq!(office.ask(get("/a")).await.unwrap(), Answer::Denied(Told::ForBox));
    office.desk.forget(&BOX.parse().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_question_shows_the_host_in_both_forms_and_no_value_of_a_query() {
    let office = Office::open();
    let ask = Ask {
        host: HostName::parse("xn--mnchen-3ya.example").unwrap(),
        port: 8443,
        why: Some("please\u{202e}\u{1b}[2J".into()),
        rule: Some(protocol::egress::RuleSeen {
            host: "*.example".into(),
            index: 0,
            origin: "project:egress.yaml:7".into(),
        }),
        ..post(&format!("/v1/{}?token=hunter2hunter2&empty=&flag", "x".repeat(600)))
    };
    let asking = office.ask(ask);
    let q = office.question().await;
    assert_eq!(q.target, "xn--mnchen-3ya.example (reads münchen.example)");
    assert!(q.title.starts_with("Send a POST request to xn--mnchen-3ya.example:8443/v1/xxx"));
    assert!(q.title.chars().count() < 140, "{}", q.title);
    let all = serde_json::to_string(&q).unwrap();
    assert!(!all.contains("hunter2") && !all.contains('\u{202e}') && !all.contains('\u{1b}'));
    let fact = |label: &str| {
        q.evidence.facts.iter().find(|f| f.label == label).map(|f| f.value.clone()).unwrap()
    };
    assert!(fact("Request").chars().count() <= 560, "{}", fact("Request"));
    assert_eq!(fact("Port"), "8443");
    assert_eq!(fact("Size"), "12 bytes");
    assert_eq!(fact("Asked because"), "project:egress.yaml:7 says so for *.example");
    assert!(fact("The box says").contains("please"));
    assert!(q.warnings.iter().any(|w| w.contains("unusual port")));
    asking.abort();
    settled().await;

    let asking = office.ask(get("/v1/jobs?token=hunter2hunter2&empty=&flag"));
    settled().await;
    let q = office.broker.pending().pop().unwrap();
    assert_eq!(q.argv, ["GET", "https://api.example.com/v1/jobs?token=…&empty=&flag"]);
    assert_eq!(q.title, "Read api.example.com/v1/jobs?token=…&empty=&flag");
    asking.abort();
}

#[tokio::test]
async fn a_box_nobody_knows_is_not_asked_about() {
    let office = Office::open();
    struct Nobody;
    impl Keep for Nobody {
        fn asker(&self, _: &BoxId) -> Option<Asker> {
            None
        }
        fn when_nobody(&self, _: &BoxId) -> WhenNobody {
            WhenNobody::Wait
        }
        fn is_bound<'a>(
            &'a self,
            _: &'a SecretId,
            _: &'a BoxId,
            _: &'a HostName,
        ) -> BoxFuture<'a, bool> {
            Box::pin(async { true })
        }
        fn widens(&self, _: &BoxId, _: &Ask, _: &NewRule) -> Vec<String> {
            Vec::new()
        }
        fn in_yaml(&self, _: &NewRule) -> String {
            String::new()
        }
        fn keep<'a>(
            &'a self,
            _: &'a BoxId,
            _: &'a NewRule,
            _: Reach,
            _: Duration,
            _: String,
        ) -> BoxFuture<'a, Result<(), String>> {
            Box::pin(async { Ok(()) })
        }
    }
    let desk = Desk::new(office.broker.clone(), Arc::new(Nobody), Limits::default());
    assert_eq!(desk.ask(get("/")).await, Answer::Unanswered);
}
