//! The pages that a problem's `type` leads to: plain HTML that loads nothing.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{Code, Problem};

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}\
    td,th{text-align:left;vertical-align:top;padding:.25rem 1rem .25rem 0}";

/// `GET /problems/{code}`: what a code means and what to do about it.
pub(crate) async fn problem_page(Path(slug): Path<String>) -> Response {
    let Some(code) = Code::from_slug(&slug) else {
        let detail = format!("There is no problem with the code {slug:?}; /problems lists those there are.");
        return Problem::new(Code::NotFound, detail).into_response();
    };
    let advice = if code.retryable() {
        "The same request, with the same Idempotency-Key, may be accepted later."
    } else {
        "Sending the same request again will not help."
    };
    let body = format!(
        "<h1>{title}</h1>\n<p>{explanation}</p>\n<table>\n<tr><th>Code</th><td><code>{slug}</code></td></tr>\n\
         <tr><th>Status</th><td>{status}</td></tr>\n<tr><th>Retry</th><td>{advice}</td></tr>\n</table>\n\
         <p><a href=\"/problems\">All problems</a></p>",
        title = escape(code.title()),
        explanation = escape(code.explanation()),
        slug = escape(code.slug()),
        status = escape(&code.status().to_string()),
    );
    html(code.title(), &body)
}

/// `GET /problems`: every code there is.
pub(crate) async fn problem_list() -> Response {
    let rows: String = Code::all()
        .map(|code| {
            format!(
                "<tr><td>{status}</td><td><a href=\"/problems/{slug}\"><code>{slug}</code></a></td>\
                 <td>{explanation}</td></tr>\n",
                status = code.status().as_u16(),
                slug = escape(code.slug()),
                explanation = escape(code.explanation()),
            )
        })
        .collect();
    let head = "<tr><th>Status</th><th>Code</th><th>Meaning</th></tr>";
    html("Problems", &format!("<h1>Problems</h1>\n<table>\n{head}\n{rows}</table>"))
}

fn html(title: &str, body: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n",
        escape(title)
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "public, max-age=3600"),
    ];
    (headers, page).into_response()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape(r#"<a href="x">'&'</a>"#), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
    }
}
