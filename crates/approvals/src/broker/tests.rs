use super::*;
use crate::{BoxFuture, Rememberable};
use protocol::question::Tier;

#[derive(Default)]
struct Notes {
    log: Mutex<Vec<String>>,
    grants: Mutex<Vec<Grant>>,
    broken: bool,
}

impl Journal for Notes {
    fn asked<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            if self.broken {
                return Err(JournalError("disk full".into()));
            }
            self.log.lock().unwrap().push(format!("asked {}", question.title));
            Ok(())
        })
    }
    fn resolved<'a>(
        &'a self,
        _: &'a QuestionId,
        outcome: &'a Outcome,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.log.lock().unwrap().push(format!("{outcome:?}"));
            Ok(())
        })
    }
    fn grant_for<'a>(
        &'a self,
        box_id: &'a BoxId,
        method: &'a str,
        scope: &'a str,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async move {
            let grants = self.grants.lock().unwrap();
            let fits = |g: &&Grant| g.box_id == *box_id && g.method == method && g.scope == scope;
            Ok(grants.iter().find(fits).cloned())
        })
    }
    fn remember<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.grants.lock().unwrap().push(grant.clone());
            Ok(())
        })
    }
}

#[derive(Default)]
struct Screen(Mutex<Vec<String>>);

impl Sink for Screen {
    fn show(&self, question: &Question) {
        self.0.lock().unwrap().push(format!("show {}", question.title));
    }
    fn withdraw(&self, question: &Question, _: &Outcome) {
        self.0.lock().unwrap().push(format!("gone {}", question.title));
    }
}

fn draft(title: &str) -> Draft {
    Draft {
        box_id: "b00000001".parse().unwrap(),
        box_name: "smoke".parse().unwrap(),
        project: "shop".into(),
        method: "git.push".into(),
        tier: Tier::Normal,
        title: title.into(),
        target: "example.org/shop".into(),
        commits: vec![],
        more_commits: 0,
        summary: None,
        warnings: vec![],
        argv: vec!["git".into(), "push".into()],
        plan: "oid".into(),
        remember: Some(Rememberable { scope: "origin main".into(), what: "push to main".into() }),
    }
}

fn broker() -> (Broker, Arc<Notes>, Arc<Screen>) {
    let (notes, screen) = (Arc::new(Notes::default()), Arc::new(Screen::default()));
    let broker = Broker::new(notes.clone(), Limits::default());
    broker.add_sink(screen.clone());
    (broker, notes, screen)
}

async fn asked(broker: &Broker, title: &str) -> tokio::task::JoinHandle<Result<Outcome, AskError>> {
    let (b, d) = (broker.clone(), draft(title));
    let task = tokio::spawn(async move { b.ask(d).await });
    while !broker.pending().iter().any(|q| q.title == title) {
        tokio::task::yield_now().await;
    }
    task
}

fn question(broker: &Broker, title: &str) -> Question {
    broker.pending().into_iter().find(|q| q.title == title).unwrap()
}

#[tokio::test(start_paused = true)]
async fn relay_19_48_the_first_answer_wins_and_the_others_are_withdrawn() {
    let (broker, _, screen) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    tokio::time::advance(Duration::from_secs(1)).await;
    broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Dialog).unwrap();
    let late = broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Tray);
    assert_eq!(late, Err(AnswerError::NotPending));
    assert_eq!(task.await.unwrap().unwrap(), Outcome::Allowed { by: Surface::Dialog });
    assert_eq!(*screen.0.lock().unwrap(), ["show one", "gone one"]);
}

#[tokio::test(start_paused = true)]
async fn relay_19_49_an_answer_is_bound_to_what_was_shown() {
    let (broker, ..) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    let wrong = broker.answer(&q.id, "0", Verdict::AllowOnce, Surface::Cli);
    assert_eq!(wrong, Err(AnswerError::DigestMismatch));
    let other = QuestionId::from_bytes([7; 16]);
    let unknown = broker.answer(&other, &q.digest, Verdict::AllowOnce, Surface::Cli);
    assert_eq!(unknown, Err(AnswerError::NotPending));
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn relay_19_51_a_caller_that_leaves_withdraws_its_question() {
    let (broker, notes, screen) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let late = broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Cli);
    assert_eq!(late, Err(AnswerError::NotPending));
    tokio::task::yield_now().await;
    assert_eq!(*notes.log.lock().unwrap(), ["asked one", "Withdrawn"]);
    assert_eq!(*screen.0.lock().unwrap(), ["show one", "gone one"]);
}

#[tokio::test(start_paused = true)]
async fn relay_19_52_no_answer_in_time_is_a_no() {
    let (broker, ..) = broker();
    let outcome = broker.ask(draft("one")).await.unwrap();
    assert_eq!(outcome, Outcome::Expired);
    assert!(!outcome.is_yes());
}

#[tokio::test(start_paused = true)]
async fn relay_19_53_the_sixth_open_question_of_a_box_is_denied() {
    let (broker, ..) = broker();
    let mut tasks = vec![];
    for n in 0..5 {
        tasks.push(asked(&broker, &n.to_string()).await);
    }
    assert_eq!(broker.ask(draft("sixth")).await.unwrap(), Outcome::TooMany);
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn relay_19_56_a_yes_that_comes_at_once_is_ignored_but_a_no_counts() {
    let (broker, ..) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    tokio::time::advance(Duration::from_millis(200)).await;
    let soon = broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Dialog);
    assert_eq!(soon, Err(AnswerError::TooSoon));
    broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Dialog).unwrap();
    assert_eq!(task.await.unwrap().unwrap(), Outcome::Denied { by: Surface::Dialog });
}

#[tokio::test(start_paused = true)]
async fn a_newer_question_never_replaces_the_one_on_screen() {
    let (broker, _, screen) = broker();
    let (one, two) = (asked(&broker, "one").await, asked(&broker, "two").await);
    assert_eq!(*screen.0.lock().unwrap(), ["show one"]);
    let q = question(&broker, "one");
    broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
    assert_eq!(*screen.0.lock().unwrap(), ["show one", "gone one", "show two"]);
    // The grace runs from when the second one appeared, not from when it was asked.
    let q = question(&broker, "two");
    let soon = broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Dialog);
    assert_eq!(soon, Err(AnswerError::TooSoon));
    assert_eq!(one.await.unwrap().unwrap(), Outcome::Denied { by: Surface::Cli });
    two.abort();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_denies_everything() {
    let (broker, ..) = broker();
    let task = asked(&broker, "one").await;
    broker.close();
    assert_eq!(task.await.unwrap().unwrap(), Outcome::HostStopped);
    assert_eq!(broker.ask(draft("late")).await.unwrap(), Outcome::HostStopped);
}

#[tokio::test(start_paused = true)]
async fn a_question_nobody_can_read_is_not_asked() {
    let (broker, notes, _) = broker();
    let mut long = draft("one");
    long.warnings = vec!["x".repeat(70_000)];
    assert!(matches!(broker.ask(long).await, Err(AskError::TooLarge)));
    assert!(notes.log.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn relay_a22_a_denied_box_that_keeps_asking_is_not_heard() {
    let (broker, _, screen) = broker();
    for n in 0..3 {
        let task = asked(&broker, &n.to_string()).await;
        let q = question(&broker, &n.to_string());
        broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
        task.await.unwrap().unwrap();
    }
    let shown = screen.0.lock().unwrap().len();
    assert_eq!(broker.ask(draft("again")).await.unwrap(), Outcome::TooMany);
    assert_eq!(screen.0.lock().unwrap().len(), shown);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_not_asked() {
    let notes = Arc::new(Notes { broken: true, ..Notes::default() });
    let broker = Broker::new(notes, Limits::default());
    assert!(broker.ask(draft("one")).await.is_err());
    assert!(broker.pending().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_remembered_yes_covers_the_same_and_nothing_else() {
    let (broker, notes, _) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    let for_an_hour = Verdict::AllowFor { seconds: 3600 };
    broker.answer(&q.id, &q.digest, for_an_hour, Surface::Cli).unwrap();
    assert!(task.await.unwrap().unwrap().is_yes());
    assert_eq!(notes.grants.lock().unwrap().len(), 1);
    assert!(matches!(broker.ask(draft("again")).await.unwrap(), Outcome::Granted { .. }));

    let mut other = draft("other branch");
    other.remember.as_mut().unwrap().scope = "origin release".into();
    let mut neighbour = draft("other box");
    neighbour.box_id = "b00000002".parse().unwrap();
    let mut force = draft("force");
    force.tier = Tier::Irreversible;
    for d in [other, neighbour, force] {
        assert_eq!(broker.ask(d).await.unwrap(), Outcome::Expired);
    }
}

#[tokio::test(start_paused = true)]
async fn what_loses_something_for_good_cannot_be_remembered() {
    let (broker, ..) = broker();
    let b = broker.clone();
    let mut d = draft("force");
    d.tier = Tier::Irreversible;
    let task = tokio::spawn(async move { b.ask(d).await });
    while broker.pending().is_empty() {
        tokio::task::yield_now().await;
    }
    let q = question(&broker, "force");
    let verdict = Verdict::AllowFor { seconds: 60 };
    let refused = broker.answer(&q.id, &q.digest, verdict, Surface::Cli);
    assert_eq!(refused, Err(AnswerError::NotRememberable));
    task.abort();
}
