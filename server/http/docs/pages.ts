import type { Operation } from '../../../catalog/index.ts'
import { escapeHtml, renderProse } from '../html.ts'
import { getGroupOf } from '../openapi.ts'
import { tagDescriptions } from '../openapi-tags.ts'
import { type Guide, resolveGuideLink } from './guides.ts'
import { renderPage } from './layout.ts'
import { renderMarkdown } from './markdown.ts'

const renderNav = (guides: readonly Guide[], root: string, current?: string): string => {
  const groups = [...Map.groupBy(guides, ({ group }) => group)]
  return `<nav class="nav" aria-label="Guides">
<input type="checkbox" id="menu"><label for="menu">Guides</label><div class="links">${groups
    .map(
      ([group, members]) =>
        `<h2>${group}</h2>${members
          .map(
            ({ name, title }) =>
              `<a href="${root}docs/${name}"${name === current ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a>`,
          )
          .join('')}`,
    )
    .join('')}</div></nav>`
}

const renderToc = ({ sections }: Guide): string => {
  const shown = sections.filter(({ level }) => level === 2 || level === 3)
  return shown.length < 2
    ? '<div></div>'
    : `<aside class="toc"><h2>On this page</h2>${shown
        .map(
          ({ level, id, text }) =>
            `<a class="level-${level}" href="#${escapeHtml(id)}">${escapeHtml(text)}</a>`,
        )
        .join('')}</aside>`
}

/** A guide, between the list of guides and that of its sections. */
export const renderGuide = (guide: Guide, guides: readonly Guide[]): string => {
  const at = guides.indexOf(guide)
  const link = (other: Guide | undefined, arrow: (title: string) => string) =>
    other ? `<a href="../docs/${other.name}">${arrow(escapeHtml(other.title))}</a>` : '<span></span>'
  return renderPage({
    title: guide.title,
    root: '../',
    part: 'guides',
    body: `<div class="columns">${renderNav(guides, '../', guide.name)}
<main class="guide">${renderMarkdown(guide.markdown, resolveGuideLink('../'))}
<div class="foot">${link(guides[at - 1], (title) => `← ${title}`)}<a href="${guide.name}.md">Markdown</a>${link(
      guides[at + 1],
      (title) => `${title} →`,
    )}</div></main>
${renderToc(guide)}</div>`,
  })
}

/** `/docs`: where to begin, all guides, and the groups of operations. */
export const renderHome = (
  guides: readonly Guide[],
  operations: readonly Operation[],
  publicUrl: string,
): string => {
  const card = (address: string, title: string, about: string) =>
    `<li><a href="${address}">${escapeHtml(title)}<span>${renderProse(about)}</span></a></li>`
  const groups = [...Map.groupBy(guides, ({ group }) => group)]
  const firstRequest = `curl ${publicUrl}/v1/me -H "Authorization: Bearer $WCRM_API_KEY"`
  return renderPage({
    title: 'Documentation',
    root: '',
    part: 'guides',
    body: `<div class="columns">${renderNav(guides, '')}<main class="guide">
<h1>Documentation</h1>
<p>Messaging and CRM for one workspace. Every operation is a REST route, <code>POST /v1/ops/&lt;name&gt;</code>,
a method of <code>@wcrm/client</code>, an MCP tool and a command.
<a href="docs/first-contact">Begin with the first contact</a>, or look up an operation in the
<a href="docs/reference">API reference</a>.</p>
<pre data-language="bash"><code>${escapeHtml(firstRequest)}</code></pre>
${groups
  .map(
    ([group, members]) =>
      `<h2>${group}</h2><ul class="cards">${members
        .map(({ name, title, about }) => card(`docs/${name}`, title, about))
        .join('')}</ul>`,
  )
  .join('\n')}
<h2>API reference</h2><ul class="cards">${[...Map.groupBy(operations, getGroupOf).keys()]
      .map((group) => card(`docs/reference#tag/${group}`, group, tagDescriptions[group] ?? ''))
      .join('')}</ul>
<h2>For programs</h2>
<p><a href="openapi.json">OpenAPI 3.1</a> · <a href="openapi-ops.json">OpenAPI of <code>/v1/ops</code></a> ·
<a href="docs/postman.json">Postman collection</a> · <a href="llms.txt">llms.txt</a> ·
<a href="llms-full.txt">llms-full.txt</a> · every page as Markdown: add <code>.md</code> to its address</p>
</main><div></div></div>`,
  })
}

/** `/docs/reference`: the operations, which the renderer draws in the browser. */
export const renderReference = (operations: readonly Operation[]): string => {
  const links = [...Map.groupBy(operations, getGroupOf).keys()]
    .map((group) => `<a href="reference/${group}.md">${group}</a>`)
    .join(', ')
  return renderPage({
    title: 'API reference',
    root: '../',
    part: 'reference',
    body: `<div id="reference"></div>
<noscript><main class="guide"><p>The reference is drawn by JavaScript. The same as text: ${links}.</p></main></noscript>
<script src="assets/scalar.js"></script><script src="assets/reference.js"></script>`,
  })
}
