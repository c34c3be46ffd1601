//! What the broker promises, one story per test; [`machine`] tries what nobody thought of.

use super::*;
use crate::{BoxFuture, Scope, Times, Together};
use protocol::BoxName;
use protocol::question::{Answers, Evidence, Fact, Reach};
use std::sync::atomic::{AtomicBool, Ordering};

mod machine;

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
    fn refused<'a>(
        &'a self,
        draft: &'a Draft,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.log.lock().unwrap().push(format!("refused {} {outcome:?}", draft.title));
            Ok(())
        })
    }
    fn grant_for<'a>(
        &'a self,
        wanted: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async move {
            let reaches = |g: &Grant| match g.reach {
                Reach::Box => g.box_id == wanted.asker.box_id,
                Reach::Project => g.project_root == wanted.asker.project_root,
                Reach::Everywhere => true,
            };
            let fits = |g: &&Grant| {
                reaches(g) && g.method == wanted.method && wanted.keys.contains(&g.scope)
            };
            Ok(self.grants.lock().unwrap().iter().find(fits).cloned())
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
struct Screen {
    log: Mutex<Vec<String>>,
    dark: AtomicBool,
}

impl Screen {
    fn seen(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Sink for Screen {
    fn show(&self, question: &Question) {
        self.log.lock().unwrap().push(format!("show {}", question.title));
    }
    fn again(&self, question: &Question) {
        let times = question.repeated().unwrap();
        self.log.lock().unwrap().push(format!("{} {times}", question.title));
    }
    fn withdraw(&self, question: &Question, _: &Outcome) {
        self.log.lock().unwrap().push(format!("gone {}", question.title));
    }
    fn is_attached(&self) -> bool {
        !self.dark.load(Ordering::SeqCst)
    }
    fn note(&self, box_name: &BoxName, text: &str) {
        self.log.lock().unwrap().push(format!("note {box_name}: {text}"));
    }
}

fn asker() -> Asker {
    Asker {
        box_id: "b00000001".parse().unwrap(),
        box_name: "smoke".parse().unwrap(),
        project: "shop".into(),
        project_root: "/home/ada/shop".into(),
    }
}

fn scope(key: &str, what: &str) -> Scope {
    Scope { key: key.into(), what: what.into() }
}

fn draft(title: &str) -> Draft {
    Draft {
        asker: asker(),
        method: "git.push".into(),
        tier: Tier::Routine,
        title: title.into(),
        target: "example.org/shop".into(),
        evidence: Evidence::default(),
        warnings: vec![],
        argv: vec!["git".into(), "push".into()],
        plan: "oid".into(),
        remember: Some(Rememberable {
            exact: scope("origin main", "push to main"),
            kind: Some(scope("origin *", "push to any branch")),
            only: None,
        }),
        answers: Answers::default(),
        times: Times::default(),
        timeout: None,
    }
}

const REMEMBER: Verdict =
    Verdict::Remember { reach: Reach::Box, breadth: Breadth::Exact, seconds: 3600 };

fn broker() -> (Broker, Arc<Notes>, Arc<Screen>) {
    let (notes, screen) = (Arc::new(Notes::default()), Arc::new(Screen::default()));
    let broker = Broker::new(notes.clone(), Limits::default());
    broker.add_sink(screen.clone());
    (broker, notes, screen)
}

type Asking = tokio::task::JoinHandle<Result<Outcome, AskError>>;

async fn asked(broker: &Broker, title: &str) -> Asking {
    asked_with(broker, draft(title)).await
}

async fn asked_with(broker: &Broker, draft: Draft) -> Asking {
    let (b, title) = (broker.clone(), draft.title.clone());
    let task = tokio::spawn(async move { b.ask(draft).await });
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
    assert_eq!(screen.seen(), ["show one", "gone one"]);
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
    assert_eq!(screen.seen(), ["show one", "gone one"]);
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
    assert_eq!(screen.seen(), ["show one"]);
    let q = question(&broker, "one");
    broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
    assert_eq!(screen.seen(), ["show one", "gone one", "show two"]);
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
    let shown = screen.seen().len();
    assert_eq!(broker.ask(draft("again")).await.unwrap(), Outcome::TooMany);
    assert_eq!(screen.seen().len(), shown);
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
    broker.answer(&q.id, &q.digest, REMEMBER, Surface::Cli).unwrap();
    assert!(task.await.unwrap().unwrap().is_yes());
    let grant = notes.grants.lock().unwrap()[0].clone();
    assert_eq!(grant.sentence, "Let smoke push to main");
    assert_eq!((grant.scope.as_str(), grant.reach), ("origin main", Reach::Box));
    assert_eq!(grant.expires_at - grant.created_at, 3_600_000);
    assert!(matches!(broker.ask(draft("again")).await.unwrap(), Outcome::Granted { .. }));

    let mut other = draft("other branch");
    other.remember.as_mut().unwrap().exact.key = "origin release".into();
    let mut neighbour = draft("other box");
    neighbour.asker.box_id = "b00000002".parse().unwrap();
    let mut force = draft("force");
    force.tier = Tier::Irreversible;
    let mut never = draft("never");
    never.remember = None;
    for d in [other, neighbour, force, never] {
        assert_eq!(broker.ask(d).await.unwrap(), Outcome::Expired);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wider_rule_covers_what_its_sentence_says() {
    for (reach, breadth, sentence, covered) in [
        (Reach::Box, Breadth::Kind, "Let smoke push to any branch", [true, false, false]),
        (
            Reach::Project,
            Breadth::Exact,
            "Let every box of shop push to main",
            [false, true, false],
        ),
        (Reach::Everywhere, Breadth::Kind, "Let every box push to any branch", [true, true, true]),
    ] {
        let (broker, notes, _) = broker();
        let task = asked(&broker, "one").await;
        let q = question(&broker, "one");
        let verdict = Verdict::Remember { reach, breadth, seconds: Remember::ALWAYS };
        broker.answer(&q.id, &q.digest, verdict, Surface::Cli).unwrap();
        task.await.unwrap().unwrap();
        let grant = notes.grants.lock().unwrap()[0].clone();
        assert_eq!(grant.sentence, sentence);
        assert!(grant.is_endless());

        let mut branch = draft("another branch");
        branch.remember.as_mut().unwrap().exact.key = "origin release".into();
        let mut neighbour = draft("a box of the project");
        neighbour.asker.box_id = "b00000002".parse().unwrap();
        let mut stranger = draft("a box elsewhere");
        stranger.asker.box_id = "b00000003".parse().unwrap();
        stranger.asker.project_root = "/home/ada/docs".into();
        for (draft, covered) in [branch, neighbour, stranger].into_iter().zip(covered) {
            let title = draft.title.clone();
            assert_eq!(broker.ask(draft).await.unwrap().is_yes(), covered, "{sentence}: {title}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_every_time_cannot_be_remembered_by_any_way_in() {
    let mut force = draft("force");
    force.tier = Tier::Irreversible;
    let mut never = draft("never");
    never.remember = None;
    let mut narrow = draft("no kind");
    narrow.remember.as_mut().unwrap().kind = None;
    let kind = Verdict::Remember { reach: Reach::Box, breadth: Breadth::Kind, seconds: 60 };
    let no_time = Verdict::Remember { reach: Reach::Box, breadth: Breadth::Exact, seconds: 0 };
    let mut project = draft("a box to be made");
    project.remember.as_mut().unwrap().only = Some(Reach::Project);
    let everywhere =
        Verdict::Remember { reach: Reach::Everywhere, breadth: Breadth::Exact, seconds: 60 };
    for (draft, verdict) in [
        (force, REMEMBER),
        (never, REMEMBER),
        (narrow, kind),
        (draft("one"), no_time),
        (project.clone(), REMEMBER),
        (project, everywhere),
    ] {
        let (broker, notes, _) = broker();
        let title = draft.title.clone();
        let task = asked_with(&broker, draft).await;
        let q = question(&broker, &title);
        assert_eq!(q.remember.is_none(), title == "force" || title == "never");
        let refused = broker.answer(&q.id, &q.digest, verdict, Surface::Cli);
        assert_eq!(refused, Err(AnswerError::NotRememberable), "{title}");
        broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Cli).unwrap();
        assert!(task.await.unwrap().unwrap().is_yes());
        assert!(notes.grants.lock().unwrap().is_empty(), "{title}");
    }
}

fn with_files(title: &str) -> Draft {
    let without = Some("Without these files".into());
    Draft { answers: Answers { without, ..Answers::default() }, ..draft(title) }
}

#[tokio::test(start_paused = true)]
async fn going_on_without_is_an_answer_of_its_own_and_makes_no_rule() {
    let (broker, notes, screen) = broker();
    let task = asked_with(&broker, with_files("copy")).await;
    let q = question(&broker, "copy");
    assert_eq!(q.answers.without.as_deref(), Some("Without these files"));
    tokio::time::advance(Duration::from_secs(1)).await;
    broker.answer(&q.id, &q.digest, Verdict::Without, Surface::Dialog).unwrap();
    let outcome = task.await.unwrap().unwrap();
    assert_eq!(outcome, Outcome::Without { by: Surface::Dialog });
    assert!(!outcome.is_yes() && outcome.goes_on());
    assert_eq!(*notes.log.lock().unwrap(), ["asked copy", "Without { by: Dialog }"]);
    assert_eq!(screen.seen(), ["show copy", "gone copy"]);
    assert!(notes.grants.lock().unwrap().is_empty());
    // It was no denial either: three of them do not silence anybody.
    for _ in 0..3 {
        let task = asked_with(&broker, with_files("copy")).await;
        let q = question(&broker, "copy");
        broker.answer(&q.id, &q.digest, Verdict::Without, Surface::Cli).unwrap();
        assert!(task.await.unwrap().unwrap().goes_on());
    }
}

#[tokio::test(start_paused = true)]
async fn going_on_without_is_refused_where_it_is_not_offered_and_held_up_like_a_yes() {
    let (broker, ..) = broker();
    let task = asked(&broker, "push").await;
    let q = question(&broker, "push");
    tokio::time::advance(Duration::from_secs(1)).await;
    for by in [Surface::Window, Surface::Cli, Surface::Dialog, Surface::PromptCommand] {
        let refused = broker.answer(&q.id, &q.digest, Verdict::Without, by);
        assert_eq!(refused, Err(AnswerError::NotOffered), "{by:?}");
    }
    assert_eq!(broker.pending().len(), 1, "it is still open");
    task.abort();
    let _ = task.await;

    let task = asked_with(&broker, with_files("copy")).await;
    let q = question(&broker, "copy");
    let without = |digest: &str, by| broker.answer(&q.id, digest, Verdict::Without, by);
    assert_eq!(without(&q.digest, Surface::Window), Err(AnswerError::TooSoon));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(without("0", Surface::Cli), Err(AnswerError::DigestMismatch));
    broker.set_locked(true);
    assert_eq!(without(&q.digest, Surface::Window), Err(AnswerError::Locked));
    broker.set_locked(false);
    assert_eq!(without(&q.digest, Surface::Window), Err(AnswerError::TooSoon));
    assert_eq!(broker.pending().len(), 1);
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_kept_although_its_caller_left() {
    let (broker, notes, _) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    broker.answer(&q.id, &q.digest, REMEMBER, Surface::Cli).unwrap();
    // The answer is in; the caller sees it, and leaves before the disk has answered.
    tokio::task::yield_now().await;
    task.abort();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(notes.grants.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn relay_19_52_a_question_may_have_its_own_clock() {
    let (broker, ..) = broker();
    let mut offer = draft("Open a page");
    offer.timeout = Some(Duration::from_secs(25));
    let began = Instant::now();
    assert_eq!(broker.ask(offer).await.unwrap(), Outcome::Expired);
    assert_eq!(began.elapsed().as_secs(), 25);
}

#[tokio::test(start_paused = true)]
async fn relay_a22_a_muted_box_is_not_heard_until_its_time_is_over() {
    let (broker, notes, screen) = broker();
    let (one, two) = (asked(&broker, "one").await, asked(&broker, "two").await);
    let id = asker().box_id;
    broker.mute(&id, Some(Duration::from_secs(600)));
    assert_eq!(one.await.unwrap().unwrap(), Outcome::Muted);
    assert_eq!(two.await.unwrap().unwrap(), Outcome::Muted);
    assert_eq!(broker.ask(draft("three")).await.unwrap(), Outcome::Muted);
    // The second never came on screen.
    assert_eq!(screen.seen(), ["show one", "gone two", "gone one"]);
    assert_eq!(notes.log.lock().unwrap().last().unwrap(), "refused three Muted");
    assert!(broker.muted_until(&id).is_some_and(|until| until > now()));

    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(broker.muted_until(&id), None);
    let four = asked(&broker, "four").await;
    broker.mute(&id, Some(Duration::from_secs(600)));
    assert_eq!(four.await.unwrap().unwrap(), Outcome::Muted);
    broker.mute(&id, None);
    asked(&broker, "five").await.abort();
}

#[tokio::test(start_paused = true)]
async fn a_muted_box_still_has_its_rules() {
    let (broker, notes, _) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    broker.answer(&q.id, &q.digest, REMEMBER, Surface::Cli).unwrap();
    task.await.unwrap().unwrap();
    broker.mute(&asker().box_id, Some(Duration::from_secs(600)));
    assert!(broker.ask(draft("again")).await.unwrap().is_yes());
    assert_eq!(notes.grants.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn where_the_settings_say_so_nobody_means_no() {
    let (broker, notes, screen) = broker();
    screen.dark.store(true, Ordering::SeqCst);
    let waits = asked(&broker, "waits").await;
    broker.set_policy(WhenNobody::Deny);
    assert_eq!(broker.ask(draft("one")).await.unwrap(), Outcome::Nobody);
    assert_eq!(notes.log.lock().unwrap().last().unwrap(), "refused one Nobody");
    screen.dark.store(false, Ordering::SeqCst);
    asked(&broker, "two").await.abort();
    waits.abort();

    let alone = Broker::new(Arc::new(Notes::default()), Limits::default());
    alone.set_policy(WhenNobody::Deny);
    assert_eq!(alone.ask(draft("one")).await.unwrap(), Outcome::Nobody);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_use_is_withdrawn() {
    let (broker, notes, screen) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    assert!(broker.withdraw(&q.id));
    assert!(!broker.withdraw(&q.id));
    assert_eq!(task.await.unwrap().unwrap(), Outcome::Withdrawn);
    assert_eq!(screen.seen(), ["show one", "gone one"]);
    assert_eq!(*notes.log.lock().unwrap(), ["asked one", "Withdrawn"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_allowed_from_a_locked_screen() {
    let (broker, ..) = broker();
    let task = asked(&broker, "one").await;
    let q = question(&broker, "one");
    tokio::time::advance(Duration::from_secs(1)).await;
    broker.set_locked(true);
    let on_screen = [
        Surface::Dialog,
        Surface::Notification,
        Surface::Window,
        Surface::Tray,
        Surface::PromptCommand,
    ];
    for surface in on_screen {
        for verdict in [Verdict::AllowOnce, REMEMBER] {
            let refused = broker.answer(&q.id, &q.digest, verdict, surface);
            assert_eq!(refused, Err(AnswerError::Locked), "{surface:?}");
        }
    }
    broker.set_locked(false);
    // The keys that unlocked it are still on their way.
    let soon = broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Dialog);
    assert_eq!(soon, Err(AnswerError::TooSoon));
    broker.set_locked(true);
    broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Dialog).unwrap();
    assert_eq!(task.await.unwrap().unwrap(), Outcome::Denied { by: Surface::Dialog });

    let task = asked(&broker, "two").await;
    let q = question(&broker, "two");
    broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Cli).unwrap();
    assert!(task.await.unwrap().unwrap().is_yes());
}

#[tokio::test(start_paused = true)]
async fn relay_a22_a_box_that_keeps_asking_is_told_of_once() {
    let (broker, notes, screen) = broker();
    for n in 0..3 {
        let task = asked(&broker, &n.to_string()).await;
        let q = question(&broker, &n.to_string());
        broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
        task.await.unwrap().unwrap();
    }
    assert_eq!(broker.ask(draft("again")).await.unwrap(), Outcome::TooMany);
    assert_eq!(notes.log.lock().unwrap().last().unwrap(), "refused again TooMany");
    let noted: Vec<_> = screen.seen().into_iter().filter(|l| l.starts_with("note")).collect();
    let text = "smoke was denied git.push three times. More of it is denied for 5 minutes.";
    assert_eq!(noted, [format!("note smoke: {text}")]);
    let mut other = draft("a pull request");
    other.method = "gh.pr.create".into();
    asked_with(&broker, other).await.abort();
}

#[tokio::test(start_paused = true)]
async fn relay_a24_relay_19_55_nothing_of_a_question_is_cut() {
    let (broker, ..) = broker();
    let mut long = draft("one");
    let tail = format!("{}--admin", "x".repeat(5000));
    long.argv.push(tail.clone());
    long.evidence.facts = vec![Fact { label: "Title".into(), value: tail.clone() }];
    let task = asked_with(&broker, long).await;
    let q = question(&broker, "one");
    assert_eq!(q.argv.last().unwrap(), &tail);
    assert_eq!(q.evidence.facts[0].value, tail);
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn relay_a25_every_part_a_person_sees_and_the_plan_is_in_the_digest() {
    let plain = draft("one").fingerprint();
    assert_eq!(draft("one").fingerprint(), plain);
    let changes: [fn(&mut Draft); 10] = [
        |d| d.title = "two".into(),
        |d| d.target = "elsewhere".into(),
        |d| d.tier = Tier::Sensitive,
        |d| d.warnings = vec!["rewrites history".into()],
        |d| d.argv.push("--force".into()),
        |d| d.plan = "another oid".into(),
        |d| d.method = "git.fetch".into(),
        |d| d.evidence.body = vec!["line".into()],
        |d| d.answers.without = Some("Without these files".into()),
        |d| d.asker.box_id = "b00000002".parse().unwrap(),
    ];
    for change in changes {
        let mut other = draft("one");
        change(&mut other);
        assert_ne!(other.fingerprint(), plain, "{other:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_asked_again_is_one_question_with_a_count() {
    let (broker, _, screen) = broker();
    let together = Arc::new(Together::default());
    let ask = || {
        let (broker, together) = (broker.clone(), together.clone());
        tokio::spawn(async move {
            let work = |times| async move {
                broker.ask(Draft { times, ..draft("push") }).await.map_err(|e| e.to_string())
            };
            together.run("push".into(), work).await
        })
    };
    let settled = async || {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    };
    let mut callers = vec![ask()];
    settled().await;
    assert_eq!(question(&broker, "push").times, 1);
    let digest = question(&broker, "push").digest;
    tokio::time::advance(Duration::from_millis(300)).await;
    callers.extend([ask(), ask()]);
    settled().await;
    let open = broker.pending();
    assert_eq!((open.len(), open[0].times), (1, 3));
    assert_eq!(open[0].digest, digest, "it is the question that was read");
    assert_eq!(screen.seen(), ["show push", "push asked 2 times", "push asked 3 times"]);
    // Whoever came after gets no question of their own, and none takes the yes away by repeating itself.
    tokio::time::advance(Duration::from_millis(50)).await;
    broker.answer(&open[0].id, &digest, Verdict::AllowOnce, Surface::Dialog).unwrap();
    for caller in callers {
        let outcome = caller.await.unwrap().unwrap();
        assert_eq!(outcome, Outcome::Allowed { by: Surface::Dialog });
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_made_at_a_terminal_covers_what_one_made_at_a_question_would() {
    let (broker, notes, _) = broker();
    let mut making = draft("a box to be made");
    making.remember.as_mut().unwrap().only = Some(Reach::Project);
    assert!(broker.allowed_by_rule(&making).await.unwrap().is_none());
    assert!(broker.remember(&making).await.unwrap());
    let grant = notes.grants.lock().unwrap()[0].clone();
    assert_eq!((grant.reach, grant.scope.as_str()), (Reach::Project, "origin main"));
    assert_eq!(grant.sentence, "Let every box of shop push to main");
    assert!(grant.is_endless());
    let mut next = making.clone();
    next.asker.box_id = "b00000002".parse().unwrap();
    assert!(broker.allowed_by_rule(&next).await.unwrap().is_some());
    next.asker.project_root = "/home/ada/docs".into();
    assert!(broker.allowed_by_rule(&next).await.unwrap().is_none());

    making.tier = Tier::Irreversible;
    assert!(!broker.remember(&making).await.unwrap());
    making.remember = None;
    assert!(!broker.remember(&making).await.unwrap());
    assert_eq!(notes.grants.lock().unwrap().len(), 1);
}

fn apart() -> Terms {
    Terms { family: "egress", open: Some(8), keeps_rules: true, ..Terms::default() }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_family_leaves_room_for_the_others() {
    let (broker, ..) = broker();
    let mut asking = Vec::new();
    for n in 0..8 {
        let (broker, draft) = (broker.clone(), draft(&format!("reach {n}")));
        asking.push(tokio::spawn(async move { broker.ask_on(draft, &apart()).await }));
        tokio::task::yield_now().await;
    }
    let ninth = broker.ask_on(draft("reach 8"), &apart()).await.unwrap();
    assert_eq!(ninth.outcome, Outcome::TooMany);
    let push = asked(&broker, "push").await;
    assert_eq!(broker.pending().len(), 9, "a push is still asked");
    push.abort();
    for task in asking {
        task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn who_keeps_its_own_rules_is_told_of_them_and_is_not_asked_for_others() {
    let (broker, notes, _) = broker();
    let task = asked(&broker, "push").await;
    let q = question(&broker, "push");
    tokio::time::advance(Duration::from_secs(1)).await;
    broker.answer(&q.id, &q.digest, REMEMBER, Surface::Window).unwrap();
    assert!(task.await.unwrap().unwrap().is_yes());
    assert_eq!(notes.grants.lock().unwrap().len(), 1);

    let own = tokio::spawn({
        let (broker, draft) = (broker.clone(), draft("reach"));
        async move { broker.ask_on(draft, &apart()).await }
    });
    tokio::task::yield_now().await;
    let q = question(&broker, "reach");
    tokio::time::advance(Duration::from_secs(1)).await;
    broker.answer(&q.id, &q.digest, REMEMBER, Surface::Window).unwrap();
    let said = own.await.unwrap().unwrap();
    let time = Duration::from_secs(3600);
    assert_eq!(said.rule, Some(Rule { reach: Reach::Box, breadth: Breadth::Exact, time }));
    assert_eq!(notes.grants.lock().unwrap().len(), 1, "the caller keeps it");
}

#[tokio::test(start_paused = true)]
async fn denials_are_counted_by_what_was_denied_and_nobody_is_as_the_terms_say() {
    let (broker, _, screen) = broker();
    let of = |host: &str| Terms { denied_as: Some(format!("requests to {host}")), ..apart() };
    for n in 0..3 {
        let task = tokio::spawn({
            let (broker, draft, terms) =
                (broker.clone(), draft(&format!("a {n}")), of("a.example"));
            async move { broker.ask_on(draft, &terms).await }
        });
        tokio::task::yield_now().await;
        let q = question(&broker, &format!("a {n}"));
        broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
        task.await.unwrap().unwrap();
    }
    assert!(screen.seen().iter().any(|line| line.contains("denied requests to a.example three")));
    let again = broker.ask_on(draft("a 3"), &of("a.example")).await.unwrap();
    assert_eq!(again.outcome, Outcome::TooMany);
    let other = tokio::spawn({
        let (broker, draft, terms) = (broker.clone(), draft("b"), of("b.example"));
        async move { broker.ask_on(draft, &terms).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(broker.pending().len(), 1, "another host is asked about");
    other.abort();

    screen.dark.store(true, Ordering::SeqCst);
    let deny = Terms { when_nobody: Some(WhenNobody::Deny), ..of("c.example") };
    let said = broker.ask_on(draft("c"), &deny).await.unwrap();
    assert_eq!(said.outcome, Outcome::Nobody);
}
