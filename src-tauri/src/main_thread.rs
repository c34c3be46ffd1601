//! The thread on which everything that is seen lives: menus, the icon, dialogs. It runs the desktop's loop.
//!
//! On Linux that is GTK's own and not the one of `tao`, which listens to every key that is pressed on the
//! desktop and wakes up every few seconds.

#[cfg(target_os = "linux")]
pub use on_gtk::{MainThread, run};
#[cfg(not(target_os = "linux"))]
pub use on_tao::{MainThread, run};

use tokio::sync::oneshot;

impl MainThread {
    /// Does this there, and waits for what comes of it.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (tx, rx) = oneshot::channel();
        self.post(move || {
            let _ = tx.send(work());
        });
        rx.await.map_err(|_| "the app ends".to_owned())?
    }
}

#[cfg(target_os = "linux")]
mod on_gtk {
    use gtk::glib::MainContext;

    /// Whoever has it can have things done there.
    #[derive(Clone)]
    pub struct MainThread(MainContext);

    impl MainThread {
        /// Does this there, soon.
        pub fn post(&self, work: impl FnOnce() + Send + 'static) {
            self.0.invoke(work);
        }

        /// Ends the loop.
        pub fn end(&self) {
            self.post(gtk::main_quit);
        }
    }

    /// Runs the loop until it is ended; `begin` comes first. GTK was started before.
    pub fn run(begin: impl FnOnce(&MainThread) + 'static) {
        let main = MainThread(MainContext::default());
        let first = main.clone();
        // In the loop, so that what it posts, even an end, comes after.
        gtk::glib::idle_add_local_once(move || begin(&first));
        gtk::main();
    }
}

#[cfg(not(target_os = "linux"))]
mod on_tao {
    use std::sync::{Arc, Mutex, PoisonError};
    use tao::event::{Event, StartCause};
    use tao::event_loop::{ControlFlow, EventLoopBuilder, EventLoopProxy};
    use tao::platform::run_return::EventLoopExtRunReturn;

    enum Wanted {
        Work(Box<dyn FnOnce() + Send>),
        End,
    }

    /// Whoever has it can have things done there.
    #[derive(Clone)]
    pub struct MainThread(Arc<Mutex<EventLoopProxy<Wanted>>>);

    impl MainThread {
        /// Does this there, soon.
        pub fn post(&self, work: impl FnOnce() + Send + 'static) {
            self.send(Wanted::Work(Box::new(work)));
        }

        /// Ends the loop.
        pub fn end(&self) {
            self.send(Wanted::End);
        }

        /// A loop that has ended needs nothing done.
        fn send(&self, wanted: Wanted) {
            let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send_event(wanted);
        }
    }

    /// Runs the loop until it is ended; `begin` comes first.
    pub fn run(begin: impl FnOnce(&MainThread) + 'static) {
        let mut events = EventLoopBuilder::with_user_event().build();
        let main = MainThread(Arc::new(Mutex::new(events.create_proxy())));
        let mut begin = Some(begin);
        events.run_return(move |event, _, flow| {
            *flow = ControlFlow::Wait;
            match event {
                Event::NewEvents(StartCause::Init) => {
                    if let Some(begin) = begin.take() {
                        begin(&main);
                    }
                }
                Event::UserEvent(Wanted::Work(work)) => work(),
                Event::UserEvent(Wanted::End) => *flow = ControlFlow::Exit,
                _ => {}
            }
        });
    }
}
