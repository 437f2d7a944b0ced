import { escapeHtml } from '../html.ts'

/** The frame of a page of `/docs`. Addresses are relative, so that it also works behind a proxy that adds a path. */
type Page = {
  title: string
  /** The way to the server's root: `../` for a page below `/docs/`, nothing for `/docs`. */
  root: '' | '../'
  /** Which entry of the bar is the page's; undefined for the landing page. */
  part: 'guides' | 'reference' | 'errors' | undefined
  body: string
}

/**
 * Content security policy of these pages: everything comes from this server, and requests go only to it. The renderer
 * of the reference writes style elements and `data:` images.
 */
export const SITE_POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ')

const renderBar = ({ root, part }: Page): string => {
  const link = (to: string, name: string, isCurrent: boolean) =>
    `<a href="${root}${to}"${isCurrent ? ' aria-current="page"' : ''}>${name}</a>`
  return `<header class="bar"><a class="brand" href="${root}docs">wcrm<span class="wide"> docs</span></a>
${link('docs', 'Guides', part === 'guides')}
${link('docs/reference', 'API', part === 'reference')}
${link('errors', '<span class="wide">Error codes</span>', part === 'errors')}
<button id="open-search" type="button" aria-label="Search"><span>Search</span><kbd>Ctrl K</kbd></button>
<button id="toggle-colors" type="button" aria-label="Light or dark" title="Light or dark">◐</button></header>`
}

const search = `<dialog id="search" aria-label="Search"><form method="dialog">
<input id="query" type="search" placeholder="Search guides, operations, headers, errors" autocomplete="off"
aria-label="Search"></form><ul id="hits"></ul></dialog>`

export const renderPage = (page: Page): string => `<!doctype html>
<html lang="en" data-root="${page.root}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(page.title)} · wcrm</title>
<link rel="icon" href="${page.root}docs/assets/icon.svg">
<link rel="stylesheet" href="${page.root}docs/assets/docs.css">
<script src="${page.root}docs/assets/docs.js"></script>
</head><body>
${renderBar(page)}
${page.body}
${search}
</body></html>
`
