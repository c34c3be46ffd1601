//! Whatever happens in whatever order: one outcome per question, one end on every screen, and no
//! yes that nobody gave.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Debug, Clone)]
enum Step {
    Ask {
        of: u8,
        method: bool,
        rememberable: bool,
        files: bool,
        seconds: Option<u64>,
    },
    /// To one of the open questions, or to one that is over.
    Answer {
        which: usize,
        verdict: u8,
        by: Surface,
        honest: bool,
    },
    Leave {
        which: usize,
    },
    /// Asks and leaves before anything came of it.
    AskAndLeave {
        polls: u8,
    },
    Withdraw {
        which: usize,
    },
    Pass {
        ms: u64,
    },
    Mute {
        of: u8,
        seconds: Option<u64>,
    },
    Lock(bool),
    Attach(bool),
    Policy(bool),
}

fn surface() -> impl Strategy<Value = Surface> {
    prop_oneof![
        Just(Surface::Dialog),
        Just(Surface::Notification),
        Just(Surface::Tray),
        Just(Surface::Cli),
        Just(Surface::Terminal),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let seconds = proptest::option::of(1_u64..1000);
    prop_oneof![
        6 => (0..2_u8, any::<bool>(), any::<bool>(), any::<bool>(), seconds.clone()).prop_map(
            |(of, method, rememberable, files, seconds)| {
                Step::Ask { of, method, rememberable, files, seconds }
            }
        ),
        8 => (0..12_usize, 0..5_u8, surface(), any::<bool>()).prop_map(
            |(which, verdict, by, honest)| Step::Answer { which, verdict, by, honest }
        ),
        2 => (0..12_usize).prop_map(|which| Step::Leave { which }),
        1 => (0..4_u8).prop_map(|polls| Step::AskAndLeave { polls }),
        1 => (0..12_usize).prop_map(|which| Step::Withdraw { which }),
        4 => prop_oneof![0_u64..800, 0_u64..1_000_000].prop_map(|ms| Step::Pass { ms }),
        1 => (0..2_u8, seconds).prop_map(|(of, seconds)| Step::Mute { of, seconds }),
        1 => any::<bool>().prop_map(Step::Lock),
        1 => any::<bool>().prop_map(Step::Attach),
        1 => any::<bool>().prop_map(Step::Policy),
    ]
}

/// Everything that was told, by question.
#[derive(Default)]
struct Witness {
    shown: Mutex<HashMap<QuestionId, u32>>,
    gone: Mutex<HashMap<QuestionId, Vec<Outcome>>>,
    asked: Mutex<HashMap<QuestionId, String>>,
    resolved: Mutex<HashMap<QuestionId, Vec<Outcome>>>,
    grants: Mutex<Vec<Grant>>,
    dark: AtomicBool,
}

impl Sink for Witness {
    fn show(&self, question: &Question) {
        *self.shown.lock().unwrap().entry(question.id.clone()).or_default() += 1;
        assert!(!self.gone.lock().unwrap().contains_key(&question.id), "shown after its end");
    }
    fn withdraw(&self, question: &Question, outcome: &Outcome) {
        self.gone.lock().unwrap().entry(question.id.clone()).or_default().push(outcome.clone());
    }
    fn is_attached(&self) -> bool {
        !self.dark.load(Ordering::SeqCst)
    }
}

impl Journal for Witness {
    fn asked<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            // On record before the caller hears of it.
            self.asked.lock().unwrap().insert(question.id.clone(), question.title.clone());
            tokio::task::yield_now().await;
            Ok(())
        })
    }
    fn resolved<'a>(
        &'a self,
        id: &'a QuestionId,
        outcome: &'a Outcome,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.resolved.lock().unwrap().entry(id.clone()).or_default().push(outcome.clone());
            Ok(())
        })
    }
    fn refused<'a>(
        &'a self,
        _: &'a Draft,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        assert!(!outcome.is_yes());
        Box::pin(async { Ok(()) })
    }
    fn grant_for<'a>(
        &'a self,
        wanted: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async move {
            let grants = self.grants.lock().unwrap();
            let fits = |g: &&Grant| {
                g.box_id == wanted.asker.box_id
                    && g.method == wanted.method
                    && wanted.keys.contains(&g.scope)
            };
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

/// One run: the broker, its witness, and what the test itself did.
struct Run {
    broker: Broker,
    witness: Arc<Witness>,
    asking: Vec<(String, Asking)>,
    /// Ids in the order they were seen open.
    seen: Vec<Question>,
    /// What each taken answer said. Two of one question would be one too many.
    taken: HashMap<QuestionId, Verdict>,
    locked: bool,
    /// When each question came on screen, or the screen was unlocked under it.
    since: HashMap<QuestionId, Instant>,
}

impl Run {
    fn new() -> Self {
        let witness = Arc::new(Witness::default());
        let broker = Broker::new(witness.clone(), Limits::default());
        broker.add_sink(witness.clone());
        Self {
            broker,
            witness,
            asking: vec![],
            seen: vec![],
            taken: HashMap::new(),
            locked: false,
            since: HashMap::new(),
        }
    }

    async fn settle(&mut self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        for question in self.broker.pending() {
            if self.seen.iter().all(|q| q.id != question.id) {
                self.seen.push(question.clone());
            }
            if self.witness.shown.lock().unwrap().contains_key(&question.id) {
                self.since.entry(question.id).or_insert_with(Instant::now);
            }
        }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Ask { of, method, rememberable, files, seconds } => {
                let title = format!("q{}", self.asking.len());
                let mut draft = if files { with_files(&title) } else { draft(&title) };
                draft.asker.box_id = format!("b0000000{of}").parse().unwrap();
                draft.method = if method { "git.push" } else { "gh.pr.create" }.into();
                draft.timeout = seconds.map(Duration::from_secs);
                if !rememberable {
                    draft.remember = None;
                }
                let (broker, title) = (self.broker.clone(), draft.title.clone());
                let asking = tokio::spawn(async move { broker.ask(draft).await });
                self.asking.push((title, asking));
            }
            Step::Answer { which, verdict, by, honest } => self.answer(which, verdict, by, honest),
            Step::Leave { which } => {
                if let Some((_, asking)) = self.asking.get(which) {
                    asking.abort();
                }
            }
            Step::AskAndLeave { polls } => {
                let (broker, draft) = (self.broker.clone(), draft("left"));
                let asking = tokio::spawn(async move { broker.ask(draft).await });
                for _ in 0..polls {
                    tokio::task::yield_now().await;
                }
                asking.abort();
            }
            Step::Withdraw { which } => {
                if let Some(question) = self.seen.get(which) {
                    self.broker.withdraw(&question.id);
                }
            }
            Step::Pass { ms } => tokio::time::advance(Duration::from_millis(ms)).await,
            Step::Mute { of, seconds } => {
                let id = format!("b0000000{of}").parse().unwrap();
                self.broker.mute(&id, seconds.map(Duration::from_secs));
            }
            Step::Lock(locked) => {
                self.broker.set_locked(locked);
                self.locked = locked;
                self.since.values_mut().for_each(|at| *at = Instant::now());
            }
            Step::Attach(there) => self.witness.dark.store(!there, Ordering::SeqCst),
            Step::Policy(deny) => {
                let policy = if deny { WhenNobody::Deny } else { WhenNobody::Wait };
                self.broker.set_policy(policy);
            }
        }
        self.settle().await;
    }

    fn answer(&mut self, which: usize, verdict: u8, by: Surface, honest: bool) {
        let Some(question) = self.seen.get(which).cloned() else { return };
        let verdict = match verdict {
            0 => Verdict::Deny,
            1 => REMEMBER,
            2 => Verdict::Remember { reach: Reach::Box, breadth: Breadth::Kind, seconds: 10 },
            3 => Verdict::Without,
            _ => Verdict::AllowOnce,
        };
        let digest = if honest { question.digest.as_str() } else { "0" };
        let was_open = self.broker.pending().iter().any(|q| q.id == question.id);
        if self.broker.answer(&question.id, digest, verdict, by).is_err() {
            return;
        }
        assert!(honest && was_open, "an answer to nothing was taken");
        assert!(self.taken.insert(question.id.clone(), verdict).is_none(), "two answers counted");
        if verdict == Verdict::Deny {
            return;
        }
        assert!(!(self.locked && on_screen(by)), "allowed from a locked screen");
        if by.needs_grace()
            && let Some(since) = self.since.get(&question.id)
        {
            assert!(since.elapsed() >= Limits::default().grace, "allowed unread");
        }
        if matches!(verdict, Verdict::Remember { .. }) {
            assert!(question.remember.is_some(), "remembered what cannot be");
        }
        if verdict == Verdict::Without {
            assert!(question.answers.without.is_some(), "went on without what is not listed");
        }
    }

    async fn check(mut self) {
        self.broker.close();
        self.settle().await;
        let witness = self.witness.clone();
        let asked = witness.asked.lock().unwrap().clone();
        let by_title: HashMap<_, _> = asked.iter().map(|(id, t)| (t.clone(), id.clone())).collect();
        for (title, asking) in self.asking {
            let Ok(ended) = asking.await else { continue };
            let outcome = ended.unwrap();
            let id = by_title.get(&title);
            match &outcome {
                Outcome::Granted { grant } => {
                    assert!(id.is_none(), "a rule and a question");
                    let grants = witness.grants.lock().unwrap();
                    assert!(grants.iter().any(|g| g.id == *grant), "a rule nobody made");
                }
                Outcome::Allowed { .. } => {
                    let verdict = id.and_then(|id| self.taken.get(id));
                    let yes =
                        verdict.is_some_and(|v| !matches!(v, Verdict::Deny | Verdict::Without));
                    assert!(yes, "a yes nobody gave");
                }
                Outcome::Without { .. } => {
                    let verdict = id.and_then(|id| self.taken.get(id));
                    assert_eq!(verdict, Some(&Verdict::Without), "an answer nobody gave");
                }
                _ => assert!(!outcome.is_yes()),
            }
            if let Some(id) = id {
                assert_eq!(witness.resolved.lock().unwrap()[id], std::slice::from_ref(&outcome));
            }
        }
        for id in asked.keys() {
            assert_eq!(witness.resolved.lock().unwrap().get(id).map_or(0, Vec::len), 1);
        }
        let (shown, gone) = (witness.shown.lock().unwrap(), witness.gone.lock().unwrap());
        for (id, times) in shown.iter() {
            assert_eq!((*times, gone[id].len()), (1, 1), "shown once, gone once");
        }
        assert!(gone.values().all(|ends| ends.len() == 1), "one end each");
        for (id, ends) in gone.iter() {
            let goes_on = self.taken.get(id).is_some_and(|v| v.lets_go_on());
            assert_eq!(ends[0].goes_on(), goes_on, "the screens were told something else");
        }
        for grant in witness.grants.lock().unwrap().iter() {
            assert_eq!(grant.reach, Reach::Box);
        }
        assert!(self.broker.pending().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn one_outcome_one_end_and_no_yes_that_nobody_gave(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut run = Run::new();
            for step in steps {
                run.step(step).await;
            }
            run.check().await;
        });
    }
}
