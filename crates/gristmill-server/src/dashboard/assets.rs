//! The files that pages need, compiled in: nothing comes from elsewhere.
//!
//! Others' work is under `assets/vendor/`, with version, licence and digest in
//! `vendored.json`, which a test holds it to.
//!
//! They go over the wire compressed, and pages do not: what a page shows of tasks stands
//! beside what its address says, and the length of both packed together tells of the one to
//! who chooses the other.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::call::Call;
use crate::problem::{Answer, NO_ROUTE, Problem};

/// One file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal $kind:literal $path:literal;)+) => {
        const ASSETS: &[Asset] = &[$(Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../../assets/", $path)),
        }),+];
    };
}

assets! {
    "app.css" "text/css; charset=utf-8" "app.css";
    "app.js" "text/javascript; charset=utf-8" "app.js";
    "charts.js" "text/javascript; charset=utf-8" "charts.js";
    "theme.js" "text/javascript; charset=utf-8" "theme.js";
    "icon.svg" "image/svg+xml" "icon.svg";
    "htmx.js" "text/javascript; charset=utf-8" "vendor/htmx-4.0.1.min.js";
    "uplot.js" "text/javascript; charset=utf-8" "vendor/uPlot-1.6.32.iife.min.js";
    "uplot.css" "text/css; charset=utf-8" "vendor/uPlot-1.6.32.min.css";
}

/// The address of a file below the root of the pages. It changes with what is in the file,
/// so that a browser may keep it and yet never has an old one.
pub(crate) fn href(name: &str) -> String {
    static MARKS: LazyLock<Vec<(&str, u64)>> =
        LazyLock::new(|| ASSETS.iter().map(|asset| (asset.name, mark(asset.bytes))).collect());
    let known = MARKS.iter().find(|(known, _)| *known == name);
    format!("assets/{name}?{:016x}", known.map_or(0, |(_, mark)| *mark))
}

/// Tells one content from another (FNV-1a); it guards nothing.
fn mark(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |mark, byte| {
        (mark ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// All of them compressed, once: nothing where that failed.
static PACKED: LazyLock<Vec<Option<Bytes>>> =
    LazyLock::new(|| ASSETS.iter().map(|asset| packed(asset.bytes)).collect());

fn packed(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Whether who asks takes gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    said.flat_map(|said| said.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        named && weight.is_none_or(|q| q.parse::<f32>().is_ok_and(|q| q > 0.0))
    })
}

/// `GET /assets/{name}`.
pub(crate) async fn serve(call: Call) -> Answer {
    let name = call.param("name");
    let mut all = ASSETS.iter().zip(PACKED.iter());
    let Some((asset, packed)) = all.find(|(asset, _)| asset.name == name) else {
        return Err(Problem::new(&NO_ROUTE, "there is no such file"));
    };
    let packed = packed.as_ref().filter(|_| takes_gzip(call.headers()));
    let bytes = packed.cloned().unwrap_or(Bytes::from_static(asset.bytes));
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    if packed.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    let keep = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, keep);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_visit_is_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        // Before any compression, and with every file; a page adds its own.
        assert!(bytes < 170 << 10, "{bytes}");
    }

    #[test]
    fn gzip_goes_to_who_takes_it() {
        let said = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
            takes_gzip(&headers)
        };
        for text in ["gzip", "deflate, gzip;q=0.5, br", "br;q=1.0,GZIP"] {
            assert!(said(text), "{text}");
        }
        for text in ["", "br", "gzip;q=0", "gzip; q=0.0, br", "gzipped"] {
            assert!(!said(text), "{text}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn every_content_has_its_own_address() {
        assert_ne!(mark(b"a"), mark(b"b"));
        for asset in ASSETS {
            assert!(href(asset.name).starts_with(&format!("assets/{}?", asset.name)));
        }
    }
}
