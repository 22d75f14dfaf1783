//! From a request to its answer.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{Semaphore, mpsc, watch};

use super::guard::{Guard, Verdict};
use super::login::{self, Form, Step};
use super::order::{Order, Refused, is_from_here};
use super::stream::Answer;
use super::{ConsoleOptions, Limits, Page, Pages};
use super::{api, assets, stream};
use crate::served::{BadQuery, Served, parameter};
use linkweir_live::METRICS_CONTENT_TYPE;

/// What every answer carries. The page may load and ask only what comes from here.
const FIELDS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// The policy of a picture: its rules of style are in it, and nothing else is needed.
const OF_PICTURES: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";
/// Requests for further pages that may wait.
pub(super) const MAX_WAITING: usize = 8;
const SVG: &str = "image/svg+xml";

/// What the server serves.
#[derive(Debug)]
pub(super) struct Site {
    live: Arc<dyn Served>,
    guard: Guard,
    limits: Limits,
    streams: Arc<Semaphore>,
    orders: Option<Sender<Order>>,
    pages: Option<Arc<dyn Pages>>,
    /// Places of those who wait for a page.
    waiting: Arc<Semaphore>,
    /// Whose turn it is of those with a wrong token.
    guesses: tokio::sync::Mutex<()>,
    /// The last interval, and whether the run has ended.
    news: watch::Sender<(u64, bool)>,
}

fn whole(
    status: StatusCode,
    content_type: &'static str,
    bytes: impl Into<Bytes>,
) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(bytes.into())));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn refusal(status: StatusCode, why: &str) -> Response<Answer> {
    whole(status, "text/plain; charset=utf-8", format!("{why}\n"))
}

fn json(bytes: Vec<u8>) -> Response<Answer> {
    whole(StatusCode::OK, "application/json", bytes)
}

fn attachment(mut response: Response<Answer>, name: &'static str) -> Response<Answer> {
    response
        .headers_mut()
        .insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(name));
    response
}

impl Site {
    pub(super) fn new(
        live: Arc<dyn Served>,
        guard: Guard,
        limits: Limits,
        options: &ConsoleOptions,
    ) -> Self {
        let news = watch::Sender::new((live.last_id(), live.is_finished()));
        Self {
            live,
            guard,
            limits,
            streams: Arc::new(Semaphore::new(limits.streams)),
            orders: options.orders.clone(),
            pages: options.pages.clone(),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            guesses: tokio::sync::Mutex::default(),
            news,
        }
    }

    /// Looks whether there is an interval that the streams do not know of.
    pub(super) fn look(&self) {
        let now = (self.live.last_id(), self.live.is_finished());
        self.news.send_if_modified(|known| {
            let is_new = *known != now;
            *known = now;
            is_new
        });
    }

    /// Lets the streams report that the run has ended, for at most `timeout`: without it browsers
    /// would see no more than a connection that closes.
    pub(super) async fn part(&self, timeout: Duration) {
        let is_alone = || self.streams.available_permits() >= self.limits.streams;
        if !self.live.is_finished() || is_alone() {
            return;
        }
        self.look();
        let step = timeout / 10;
        for _ in 0..10 {
            if is_alone() {
                break;
            }
            tokio::time::sleep(step).await;
        }
        // Their last piece is on its way out of this thread.
        tokio::time::sleep(step).await;
    }

    /// Whether requests must bring a token.
    pub(super) const fn has_token(&self) -> bool {
        self.guard.has_token()
    }

    /// The answer to a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let step = Step::of(request.method(), request.uri().path());
        let mut response = match step.filter(|_| self.guard.has_token()) {
            Some(step) => self.entrance(step, request).await,
            None => self.guarded_or_made(&request).await,
        };
        let fields = response.headers_mut();
        if fields.get(header::CONTENT_TYPE).is_some_and(|of| of == SVG) {
            let policy = HeaderValue::from_static(OF_PICTURES);
            fields.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        for (name, value) in FIELDS {
            let own = fields.entry(name);
            own.or_insert(HeaderValue::from_static(value));
        }
        response
    }

    async fn guarded_or_made(&self, request: &Request<Incoming>) -> Response<Answer> {
        let mut response = self.guarded(request);
        if response.status() == StatusCode::UNAUTHORIZED && brings_token(request) {
            self.slow_down().await;
        }
        if matches!(response.body(), Answer::Wanted) {
            let cookie = response.headers_mut().remove(header::SET_COOKIE);
            response = self.made(request).await;
            if let Some(cookie) = cookie {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
        }
        response
    }

    /// Guessing is slow, however many connections do it; who has the token does not wait.
    async fn slow_down(&self) {
        let turn = self.guesses.lock().await;
        tokio::time::sleep(self.limits.wrong_token).await;
        drop(turn);
    }

    /// The form, what was filled in, and the way out.
    async fn entrance(&self, step: Step, request: Request<Incoming>) -> Response<Answer> {
        let verdict = self.judge(&request);
        if verdict == Verdict::WrongHost {
            return misdirected();
        }
        let is_from_here = is_from_here(request.headers(), &self.guard);
        match step {
            Step::Style => whole(StatusCode::OK, "text/css; charset=utf-8", login::STYLE),
            Step::Script => whole(
                StatusCode::OK,
                "text/javascript; charset=utf-8",
                login::SCRIPT,
            ),
            Step::Page if verdict == Verdict::Unauthorized => form(StatusCode::OK, "/", false),
            Step::Page => see("/", None),
            Step::In | Step::Out if !is_from_here => {
                let why = "forms of other sites are not accepted";
                unread(refusal(StatusCode::FORBIDDEN, why))
            }
            Step::In => self.log_in(request).await,
            Step::Out => see("/login", Some(&self.guard.no_cookie())),
        }
    }

    async fn log_in(&self, request: Request<Incoming>) -> Response<Answer> {
        let read = tokio::time::timeout(self.limits.head, Form::read(request)).await;
        let Some(filled) = read.ok().flatten() else {
            let why = "expected a form with `token`";
            return unread(refusal(StatusCode::BAD_REQUEST, why));
        };
        if self.guard.knows(&filled.token) {
            let cookie = self.guard.cookie();
            return see(login::destination(&filled.to), cookie.as_deref());
        }
        self.slow_down().await;
        form(StatusCode::UNAUTHORIZED, &filled.to, true)
    }

    fn judge(&self, request: &Request<Incoming>) -> Verdict {
        let field = |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok());
        let query = request.uri().query().unwrap_or_default();
        // Twice the field, or another authority in the target, is somebody's trick.
        let is_one_host = request.headers().get_all(header::HOST).iter().count() == 1
            && request.uri().authority().is_none();
        self.guard.judge(
            field(header::HOST).filter(|_| is_one_host),
            field(header::AUTHORIZATION),
            field(header::COOKIE),
            parameter(query, "token"),
        )
    }

    fn guarded(&self, request: &Request<Incoming>) -> Response<Answer> {
        let field = |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok());
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let verdict = self.judge(request);
        match verdict {
            Verdict::WrongHost => return misdirected(),
            Verdict::Unauthorized if login::is_by_browser(request.method(), request.headers()) => {
                let is_wrong = parameter(query, "token").is_some();
                return form(
                    StatusCode::UNAUTHORIZED,
                    &login::wanted(path, query),
                    is_wrong,
                );
            }
            Verdict::Unauthorized => {
                return challenged(refusal(
                    StatusCode::UNAUTHORIZED,
                    "a token is needed: open the address printed at the start, or send `Authorization: Bearer TOKEN`",
                ));
            }
            Verdict::Pass | Verdict::PassByCookie | Verdict::SetCookie => {}
        }
        if let (Some(orders), &Method::POST) = (&self.orders, request.method()) {
            // The token of an address may stand in a log or a bookmark: it is not enough for an order.
            return unread(if verdict == Verdict::SetCookie {
                refusal(StatusCode::FORBIDDEN, NOT_OURS)
            } else {
                take_order(path, request.headers(), &self.guard, orders)
            });
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allowed);
            return unread(response);
        }
        let is_first_visit = verdict == Verdict::SetCookie;
        let mut response = if is_first_visit && path == "/" {
            // The token leaves the address bar.
            see("/", None)
        } else {
            self.route(
                request.method(),
                path,
                query,
                field(HeaderName::from_static("last-event-id")),
            )
        };
        if is_first_visit && let Some(cookie) = self.guard.cookie() {
            add(&mut response, header::SET_COOKIE, &cookie);
        }
        if verdict == Verdict::PassByCookie && path == "/api/snapshot" {
            // The page cannot see the cookie that it can drop.
            add(&mut response, LOGGED_IN, "cookie");
        }
        response
    }

    fn route(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        last_event: Option<&str>,
    ) -> Response<Answer> {
        if let Some(why) = api::wrong_parameter(path, query) {
            return refusal(StatusCode::BAD_REQUEST, &why);
        }
        match path {
            "/api" | "/api/" => json(api::list()),
            "/api/snapshot" => json(self.live.snapshot()),
            "/api/stream" => self.stream(method, query, last_event),
            "/api/history" => self.live.past(query).map_or_else(
                || {
                    refusal(
                        StatusCode::NOT_FOUND,
                        "no history is kept: --console-history FILE",
                    )
                },
                |past| past.map_or_else(bad_request, json),
            ),
            "/api/records" => Response::new(Answer::Wanted),
            "/api/top" => self.live.top(query).map_or_else(bad_request, json),
            "/api/ccdf" => self.live.ccdf(query).map_or_else(bad_request, json),
            "/api/download.csv" => self.live.csv(query).map_or_else(bad_request, |csv| {
                let csv = whole(StatusCode::OK, "text/csv; charset=utf-8", csv);
                attachment(csv, "attachment; filename=\"linkweir.csv\"")
            }),
            "/api/download.json" => self.live.json(query).map_or_else(bad_request, |value| {
                attachment(json(value), "attachment; filename=\"linkweir.json\"")
            }),
            "/api/status" => self.live.status().map_or_else(
                || refusal(StatusCode::NOT_FOUND, "this run has no status"),
                json,
            ),
            "/api/probes" => self.live.probes().map_or_else(
                || refusal(StatusCode::NOT_FOUND, "these are the statistics of one run"),
                json,
            ),
            "/metrics" => whole(StatusCode::OK, METRICS_CONTENT_TYPE, self.live.metrics()),
            "/healthz" => whole(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"),
            _ if self.pages.as_ref().is_some_and(|pages| pages.has(path)) => {
                Response::new(Answer::Wanted)
            }
            _ => asset(path),
        }
    }

    /// One of the further pages, or the records that a condition finds. It takes a while: intervals and metrics do not wait for it.
    async fn made(&self, request: &Request<Incoming>) -> Response<Answer> {
        let is = |name: &'static str, value: &str| {
            let field = request.headers().get(HeaderName::from_static(name));
            field.is_some_and(|field| field == value)
        };
        // As a picture in somebody else's page it would only cost time.
        if is("sec-fetch-site", "cross-site") && !is("sec-fetch-mode", "navigate") {
            return refusal(StatusCode::FORBIDDEN, "not for pages of other sites");
        }
        let place = Arc::clone(&self.waiting).try_acquire_owned();
        let Ok(place) = place else {
            let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, "busy with other pages");
            let soon = HeaderValue::from_static("2");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
            return response;
        };
        let uri = request.uri().clone();
        if uri.path() == "/api/records" {
            let live = Arc::clone(&self.live);
            let found = tokio::task::spawn_blocking(move || {
                let found = live.records(uri.query().unwrap_or_default());
                drop(place);
                found
            });
            let found = found.await.unwrap_or_default();
            return found.map_or_else(
                || refusal(StatusCode::NOT_FOUND, "there are no records behind this"),
                |records| records.map_or_else(bad_request, json),
            );
        }
        let Some(pages) = self.pages.clone() else {
            return asset(uri.path());
        };
        let made = tokio::task::spawn_blocking(move || {
            let made = pages.page(uri.path(), uri.query().unwrap_or_default());
            drop(place);
            made
        });
        let made = made.await;
        page(made.unwrap_or_else(|_| Page::Failed("this page cannot be made".to_owned())))
    }

    fn stream(&self, method: &Method, query: &str, last_event: Option<&str>) -> Response<Answer> {
        let after = last_event
            .or_else(|| parameter(query, "after"))
            .and_then(|id| id.parse::<u64>().ok());
        let last = self.live.last_id();
        // An id of the future is one of another run: everything is new.
        let after = match after {
            Some(after) if after > last => 0,
            Some(after) => after,
            None => last,
        };
        let body = if method == Method::HEAD {
            Answer::Whole(None)
        } else {
            let Ok(place) = Arc::clone(&self.streams).try_acquire_owned() else {
                let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, "too many streams");
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
                return response;
            };
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(stream::send(
                Arc::clone(&self.live),
                after,
                self.news.subscribe(),
                self.limits.heartbeat,
                sender,
                place,
            ));
            Answer::Stream(receiver)
        };
        let mut response = Response::new(body);
        let fields = response.headers_mut();
        fields.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        );
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // nginx would gather events otherwise.
        fields.insert(
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        );
        response
    }
}

/// Says that it was a cookie that opened.
const LOGGED_IN: HeaderName = HeaderName::from_static("x-linkweir-login");

/// Adds a field whose value is ours.
fn add(response: &mut Response<Answer>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Sends a browser elsewhere on this console.
fn see(path: &str, cookie: Option<&str>) -> Response<Answer> {
    let mut response = refusal(StatusCode::SEE_OTHER, &format!("see {path}"));
    add(&mut response, header::LOCATION, path);
    if let Some(cookie) = cookie {
        add(&mut response, header::SET_COOKIE, cookie);
    }
    response
}

/// The form for the token.
fn form(status: StatusCode, to: &str, is_wrong: bool) -> Response<Answer> {
    let text = login::page(to, is_wrong);
    let mut response = whole(status, "text/html; charset=utf-8", text);
    add(
        &mut response,
        header::CONTENT_SECURITY_POLICY,
        login::POLICY,
    );
    add(&mut response, header::REFERRER_POLICY, login::REFERRER);
    if status == StatusCode::UNAUTHORIZED {
        response = challenged(response);
    }
    response
}

/// With what there is to prove (RFC 9110 sec. 11.6.1).
fn challenged(mut response: Response<Answer>) -> Response<Answer> {
    add(&mut response, header::WWW_AUTHENTICATE, "Bearer");
    response
}

/// After it the connection closes: what stands behind the head was not read.
fn unread(mut response: Response<Answer>) -> Response<Answer> {
    add(&mut response, header::CONNECTION, "close");
    response
}

fn misdirected() -> Response<Answer> {
    refusal(
        StatusCode::MISDIRECTED_REQUEST,
        "this console does not answer under that name; open it by its address, or allow the name in its options",
    )
}

const NOT_OURS: &str = "orders come from the page, or with `X-Linkweir-Order: start` or `stop` and `Authorization: Bearer TOKEN`";

/// Whether a request without the right token has another one.
fn brings_token(request: &Request<Incoming>) -> bool {
    let fields = request.headers();
    let query = request.uri().query().unwrap_or_default();
    fields.contains_key(header::AUTHORIZATION)
        || fields.contains_key(header::COOKIE)
        || parameter(query, "token").is_some()
}

fn take_order(
    path: &str,
    fields: &HeaderMap,
    guard: &Guard,
    orders: &Sender<Order>,
) -> Response<Answer> {
    match Order::of(path, fields, guard) {
        Ok(order) if orders.send(order).is_ok() => whole(
            StatusCode::ACCEPTED,
            "text/plain; charset=utf-8",
            "accepted\n",
        ),
        Ok(_) => refusal(StatusCode::CONFLICT, "the run has ended"),
        Err(Refused::Foreign) => refusal(StatusCode::FORBIDDEN, NOT_OURS),
        Err(Refused::Unknown) => refusal(StatusCode::NOT_FOUND, "no such order"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_or_else")]
fn bad_request(error: BadQuery) -> Response<Answer> {
    refusal(StatusCode::BAD_REQUEST, &error.0)
}

fn page(page: Page) -> Response<Answer> {
    match page {
        Page::Html(text) => whole(StatusCode::OK, "text/html; charset=utf-8", text),
        Page::Svg(text) => whole(StatusCode::OK, SVG, text),
        Page::Refused(why) => refusal(StatusCode::BAD_REQUEST, &why),
        Page::Failed(why) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn asset(path: &str) -> Response<Answer> {
    let Some(asset) = assets::find(path) else {
        return refusal(StatusCode::NOT_FOUND, "nothing here");
    };
    let mut response = whole(StatusCode::OK, asset.content_type, asset.bytes);
    let caching = if asset.is_immutable {
        "private, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}
