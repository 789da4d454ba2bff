//! The description of the interface as OpenAPI.

use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder};

use crate::service::access::answer::ApiError;

/// Tenfold's live page, for programs. Requests with a body send JSON. Where the address is not loopback, all but the
/// page itself needs `authorization: Bearer TOKEN`. Times are in the unit of their names, and absent is null.
#[derive(OpenApi)]
#[openapi(info(title = "Tenfold"), components(schemas(ApiError)))]
struct Head;

/// Before the routes.
pub fn head() -> Document {
    Head::openapi()
}

/// Every operation may be refused, in the same shape.
pub fn completed(mut document: Document) -> Document {
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post];
        operations.into_iter().flatten().for_each(refuse);
    }
    document
}

fn refuse(operation: &mut Operation) {
    // OpenAPI wants a description of each answer.
    let summary = operation.summary.clone().unwrap_or_default();
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description.clone_from(&summary);
        }
    }
    for status in ["4XX", "5XX"] {
        operation.responses.responses.insert(status.to_owned(), RefOr::T(refusal()));
    }
}

fn refusal() -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ApiError"))).build();
    ResponseBuilder::new()
        .description("It is refused, with a reason and a remedy in a sentence.")
        .content("application/json", content)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::api::described;

    #[test]
    fn every_route_is_described_with_its_refusals() {
        let all = described().merge(crate::dashboard::api::locust::routes());
        let document = completed(all.into_openapi());
        let json = serde_json::to_value(&document).unwrap();
        let paths = json["paths"].as_object().unwrap();
        assert!(paths.len() >= 30, "{}", paths.len());
        assert!(paths["/swarm"]["post"].is_object() && paths["/stats/requests"]["get"].is_object());
        let mut ids = std::collections::HashSet::new();
        for (path, item) in paths {
            for (method, operation) in item.as_object().unwrap() {
                let error = &operation["responses"]["4XX"]["content"]["application/json"]["schema"];
                assert_eq!(error["$ref"], "#/components/schemas/ApiError", "{method} {path}");
                assert!(operation["summary"].is_string(), "{method} {path} has no summary");
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path}");
                for (status, answer) in operation["responses"].as_object().unwrap() {
                    assert_ne!(
                        answer["description"].as_str().unwrap_or(""),
                        "",
                        "{method} {path} {status}"
                    );
                }
            }
        }
        let ids = &paths["/api/history/instances"]["get"]["parameters"][0];
        assert_eq!((&ids["in"], &ids["required"]), (&"query".into(), &true.into()));
        assert!(json["components"]["schemas"]["ApiError"].is_object());
    }
}
