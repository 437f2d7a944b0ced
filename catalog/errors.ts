/**
 * The table of error codes: HTTP status, title, and what mends it. `code` is stable; clients branch on it.
 * Source: spec "Errors", contract 2 and 3.
 */
export const errors = {
  invalid_input: {
    status: 400,
    title: 'Invalid input',
    about:
      'A field, header or parameter is missing or malformed. `errors` points at each one and says the mend; `reason` names the rule where there is one.',
    mend: 'Correct the fields that `errors` names and send the request again.',
  },
  unauthenticated: {
    status: 401,
    title: 'Not authenticated',
    about: 'The Authorization header is missing, or the key is unknown, expired or revoked.',
    mend: 'Send `Authorization: Bearer <API key>`. Keys are made with `wcrm admin keys create`.',
  },
  entitlement_required: {
    status: 403,
    title: 'Plan does not include this',
    about: 'The plan of the workspace lacks the feature `api_access`.',
    mend: 'Add the feature with `wcrm admin workspaces update --features api_access`.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    about:
      'The staff member who owns the key may not do this, or a limit of the plan is reached. `reason` tells which.',
    mend: 'Use a key of a staff member who may, or ask an administrator to change the role, the permission or the limit.',
  },
  insufficient_scope: {
    status: 403,
    title: 'Key lacks the scope',
    about: 'The key does not hold the scope that the operation needs; `scope` names it.',
    mend: 'Use a key that holds the scope; `wcrm admin keys create --scopes` makes one.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    about: 'No such record in this workspace, or no such route or operation.',
    mend: 'Check the id or the path; list the records to find the right one.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    about: 'The path exists, but not with this method. The `Allow` header lists those it has.',
    mend: 'Use one of the methods in the `Allow` header.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    about:
      'The request does not fit the present state: something with this name exists, or a request with the same Idempotency-Key is still running. `reason` tells which.',
    mend: 'Read the record again and decide anew; if a request is still running, wait and retry with the same key.',
  },
  window_closed: {
    status: 409,
    title: 'Reply window closed',
    about: 'A free-form reply was asked for outside the reply window of the channel; `window` shows it.',
    mend: 'Send an approved template instead (`messaging_send_template`), or wait until the customer writes.',
  },
  payload_too_large: {
    status: 413,
    title: 'Body too large',
    about: 'The body is larger than the operation takes (1 MiB; `limit_bytes` says how much).',
    mend: 'Send less in one request, for example in several calls.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    about: 'A body was sent that is not declared as JSON.',
    mend: 'Send `Content-Type: application/json`.',
  },
  confirm_required: {
    status: 428,
    title: 'Confirmation required',
    about:
      "The change cannot be undone, or customers see it, so it wants the operation's verb as confirmation; `confirm` names it.",
    mend: 'Send the header `Api-Confirm: <verb>`, or rehearse with `dry_run`.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    about: 'The key or the workspace is over its limit; `violated-policies` names which.',
    mend: 'Wait as many seconds as `Retry-After` says, then send the request again.',
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    about: 'The server failed in a way it did not foresee. Nothing was changed.',
    mend: 'Retry with the same Idempotency-Key; if it happens again, report the `request_id`.',
  },
  upstream_error: {
    status: 502,
    title: 'Upstream error',
    about: 'The messaging provider or a backing service refused, or answered unexpectedly.',
    mend: 'Read `detail`; retry with the same Idempotency-Key, which never runs a change twice.',
  },
  service_unconfigured: {
    status: 503,
    title: 'Not configured',
    about: 'This server has the capability switched off.',
    mend: 'Ask the administrator of the server to switch it on.',
  },
  upstream_unavailable: {
    status: 503,
    title: 'Briefly unavailable',
    about: 'A backing service, such as the database, cannot be reached at the moment.',
    mend: 'Retry with backoff and the same Idempotency-Key.',
  },
  timeout: {
    status: 504,
    title: 'Timed out',
    about: 'The work did not finish in time.',
    mend: 'Retry with the same Idempotency-Key: it never runs twice. A search may need to be narrowed.',
  },
} as const

export type ErrorCode = keyof typeof errors

/** Codes that every operation may answer, whatever it does (contract 2). */
export const commonErrors: readonly ErrorCode[] = [
  'invalid_input',
  'unauthenticated',
  'entitlement_required',
  'insufficient_scope',
  'rate_limited',
  'method_not_allowed',
  'payload_too_large',
  'unsupported_media_type',
  'internal_error',
  'upstream_unavailable',
  'timeout',
]
