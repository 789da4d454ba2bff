//! The address of the page of a `plan` or `load`, which lives as long as the command.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::live_state::{About, Dashboard, Pace};
use crate::config::quantity;
use crate::service::access::{Access, PageUrl};
use crate::service::admin::connections::{self, PUBLIC_BODY_BYTES, PUBLIC_CONNECTIONS};
use crate::service::admin::open_tcp;
use crate::terminal::output;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Live page")]
pub struct PageArguments {
    /// Serve the live page at ADDRESS while it runs [default: none]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::address)]
    admin: Option<SocketAddr>,
    /// Host name by which --admin may be asked for, beside its address and localhost; may be given several times
    #[arg(long = "admin-name", value_name = "NAME", value_parser = quantity::host_name)]
    admin_names: Vec<String>,
    /// Ask other users of this machine for no token at --admin
    #[arg(long)]
    admin_open: bool,
    /// Serve the live page, at a free port unless --admin names one, and start a browser if there is one
    #[arg(long)]
    open: bool,
}

/// A page that is served.
pub struct Page {
    pub dashboard: Arc<Dashboard>,
    closed: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

/// For what is on its way to open pages at the end. The command does not wait for a page.
const LAST_WORDS: Duration = Duration::from_millis(300);

impl PageArguments {
    /// Opens the page, if it was asked for, and says where it is.
    pub fn open(&self, about: About, pace: Pace) -> anyhow::Result<Option<Page>> {
        let free = || SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let Some(address) = self.admin.or_else(|| self.open.then(free)) else { return Ok(None) };
        let listener = open_tcp(address, None)?;
        let here = listener.local_addr()?;
        let access = Access::of(here, &self.admin_names, self.admin_open)?;
        let url = access.url(here);
        output::tell(format_args!("page at {url}"));
        let dashboard = Arc::new(Dashboard::new(about, pace));
        let page = Page::serve(listener, access, dashboard);
        if self.open {
            show(&url);
        }
        Ok(Some(page))
    }
}

impl Page {
    fn serve(listener: TcpListener, access: Access, dashboard: Arc<Dashboard>) -> Page {
        let routes = connections::with_bodies(dashboard.routes(), PUBLIC_BODY_BYTES);
        let (closed, mut is_closed) = watch::channel(false);
        let end = async move { drop(is_closed.wait_for(|closed| *closed).await) };
        let routes = access.guard(routes);
        let serving = connections::serve(listener, PUBLIC_CONNECTIONS, routes, end);
        Page { dashboard, closed, serving: tokio::spawn(serving) }
    }

    /// After the last event.
    pub async fn close(self) {
        self.closed.send_replace(true);
        let _ = tokio::time::timeout(LAST_WORDS, self.serving).await;
    }
}

/// Starts a browser. Without one, the address on the terminal is enough. A token is not put where others see it.
fn show(url: &PageUrl) {
    if url.has_token() {
        return;
    }
    let mut browser = Command::new("xdg-open");
    browser.arg(url.whole()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // What ends this command with its terminal must not end the browser.
    if let Ok(mut browser) = browser.process_group(0).spawn() {
        std::thread::spawn(move || browser.wait());
    }
}
