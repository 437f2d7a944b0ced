import { Marked, type Token, type Tokens } from 'marked'
import { escapeHtml } from '../html.ts'

/** Returns the address of a link's target on the site; undefined: there is none, and the text alone is shown. */
export type ResolveLink = (target: string) => string | undefined

type Heading = { level: number; id: string; text: string }
/** What stands below one heading, without markup. */
export type Section = Heading & { body: string }

/** Takes the markup out of tokens. */
const toText = (tokens: readonly Token[]): string =>
  tokens
    .map((token) => {
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table
        return [header, ...rows].flatMap((row) => row.map((cell) => toText(cell.tokens))).join(' ')
      }
      if (token.type === 'list')
        return (token as Tokens.List).items.map((item) => toText(item.tokens)).join(' ')
      if (token.type === 'space' || token.type === 'br') return ' '
      return 'tokens' in token && token.tokens
        ? toText(token.tokens)
        : 'text' in token
          ? String(token.text)
          : ''
    })
    .join('')

/** The anchor of a heading, as repositories on the web make it. */
const toAnchor = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

/** Renders the Markdown in which the guides are written. HTML in it is shown, not interpreted. */
export const renderMarkdown = (markdown: string, resolve: ResolveLink): string => {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const anchor = escapeHtml(toAnchor(toText(tokens)))
        const text = this.parser.parseInline(tokens)
        return `<h${depth} id="${anchor}"><a class="anchor" href="#${anchor}">${text}</a></h${depth}>\n`
      },
      link({ href, tokens }) {
        const address = resolve(href)
        const text = this.parser.parseInline(tokens)
        return address === undefined ? text : `<a href="${escapeHtml(address)}">${text}</a>`
      },
      code({ text, lang }) {
        const language = lang ? ` data-language="${escapeHtml(lang)}"` : ''
        return `<pre${language}><code>${escapeHtml(text)}</code></pre>\n`
      },
      table({ header, rows }) {
        const render = (tag: string, cells: readonly Tokens.TableCell[]): string =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
        const body = rows.map((row) => render('td', row)).join('\n')
        const head = render('th', header)
        return `<div class="table"><table><thead>${head}</thead><tbody>\n${body}\n</tbody></table></div>\n`
      },
      html({ text }) {
        return escapeHtml(text)
      },
    },
  })
  return marked.parse(markdown, { async: false })
}

/** Returns what stands below each heading; code is left out of it. */
export const listSections = (markdown: string): Section[] => {
  const sections: (Heading & { tokens: Token[] })[] = []
  for (const token of new Marked().lexer(markdown)) {
    if (token.type === 'heading') {
      const { depth, tokens } = token as Tokens.Heading
      const text = toText(tokens)
      sections.push({ level: depth, id: toAnchor(text), text, tokens: [] })
    } else if (token.type !== 'code') sections.at(-1)?.tokens.push(token)
  }
  return sections.map(({ tokens, ...heading }) => ({
    ...heading,
    body: toText(tokens).replaceAll(/\s+/g, ' ').trim(),
  }))
}

/** Replaces links to what the site does not have by their text. */
export const withoutDeadLinks = (markdown: string, resolve: ResolveLink): string =>
  markdown.replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (link, label: string, target: string) =>
    resolve(target) === undefined ? label : link,
  )
