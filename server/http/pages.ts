import { type ErrorCode, errors } from '../../catalog/errors.ts'
import { describeReason, type Reason, reasons } from '../../catalog/reasons.ts'
import { renderPage as renderSitePage, SITE_POLICY } from './docs/layout.ts'
import { escapeHtml, renderProse } from './html.ts'
import { problemExample } from './problem-example.ts'

type PageSource = { config: { publicUrl: string } }

/**
 * Returns an HTML page: `/`, `/errors` or `/errors/<code>`; undefined for any other path. Everything is served from
 * here, so that the pages work without the internet.
 */
export const renderPage = (path: string, app: PageSource): Response | undefined => {
  const { publicUrl } = app.config
  if (path === '/') return createHtmlResponse(renderLandingPage(publicUrl), SITE_POLICY)
  if (path === '/errors') return createHtmlResponse(renderErrorIndex(), SITE_POLICY)
  const code = /^\/errors\/(\w+)$/.exec(path)?.[1]
  return code !== undefined && Object.hasOwn(errors, code)
    ? createHtmlResponse(renderErrorPage(code as ErrorCode, publicUrl), SITE_POLICY)
    : undefined
}

const renderLandingPage = (publicUrl: string): string =>
  renderFramed({
    title: 'Messaging and CRM',
    body: `<p>Contacts, conversations, templates and broadcasts of one workspace. Every operation is a REST route, a
<code>POST /v1/ops/&lt;name&gt;</code>, an MCP tool and a command.</p>
<ul>
<li><a href="docs">Documentation</a>: guides, and the <a href="docs/reference">API reference</a> with requests to
try</li>
<li><a href="openapi.json">OpenAPI 3.1 description</a> of the REST routes and webhooks,
<a href="openapi-ops.json">and of <code>POST /v1/ops/&lt;name&gt;</code></a></li>
<li><a href="errors">Error codes</a> and how to fix them</li>
<li>MCP: <code>${escapeHtml(publicUrl)}/mcp</code> (streamable HTTP; the API key as bearer token)</li>
<li><a href="healthz">Health</a> and <a href="readyz">readiness</a></li>
</ul>
<h2>A first request</h2>
<pre><code>curl ${escapeHtml(publicUrl)}/v1/me -H "Authorization: Bearer $WCRM_API_KEY"</code></pre>`,
  })

/** The page that explains one error code. */
const renderErrorPage = (code: ErrorCode, publicUrl: string): string => {
  const { status, title, description, fix } = errors[code]
  return renderFramed({
    title,
    root: '../',
    part: 'errors',
    body: `<p>${status} <code>${code}</code></p>
<h2>When</h2><p>${renderProse(description)}</p>
<h2>What to do</h2><p>${renderProse(fix)}</p>
${renderReasons(code)}<h2>Example</h2>
<pre><code>HTTP status ${status}
Content-Type: application/problem+json

${escapeHtml(JSON.stringify(problemExample(code, publicUrl), null, 2))}</code></pre>
<p><a href="../errors">All error codes</a>, <a href="../docs/errors">how errors work</a></p>`,
  })
}

/** What `reason` can be in problems of this code; empty where it has none. */
const renderReasons = (code: ErrorCode): string => {
  const rows = Object.entries(reasons)
    .filter(([, { codes }]) => codes.includes(code))
    .map(
      ([reason]) =>
        `<tr><td><code>${reason}</code></td><td>${renderProse(describeReason(reason as Reason))}</td></tr>`,
    )
  return rows.length === 0
    ? ''
    : `<h2>Reasons</h2>
<div class="table"><table><thead><tr><th><code>reason</code></th><th>When</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table></div>
`
}

const renderErrorIndex = (): string =>
  renderFramed({
    title: 'Error codes',
    part: 'errors',
    body: `<p>Every error is <code>application/problem+json</code> (RFC 9457) with a stable <code>code</code>
(<a href="docs/errors">how errors work</a>).</p>
<div class="table"><table><thead><tr><th>Code, status</th><th>When</th></tr></thead><tbody>
${Object.entries(errors)
  .map(
    ([code, { status, description }]) =>
      `<tr><td><a href="errors/${code}"><code>${code}</code></a><br>${status}</td>` +
      `<td>${renderProse(description)}</td></tr>`,
  )
  .join('\n')}
</tbody></table></div>`,
  })

/** A page in the frame of the documentation. */
const renderFramed = ({
  title,
  body,
  root = '',
  part,
}: {
  title: string
  body: string
  root?: '' | '../'
  part?: 'errors'
}): string =>
  renderSitePage({
    title,
    root,
    part,
    body: `<main class="guide"><h1>${escapeHtml(title)}</h1>
${body}</main>`,
  })

const plainPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const createHtmlResponse = (body: string, policy = plainPolicy, status = 200): Response =>
  new Response(body, {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-cache',
    },
  })
