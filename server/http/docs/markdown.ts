import { escapeHtml } from '../html.ts'

/**
 * Renders the Markdown in which the guides are written: headings, paragraphs, lists, tables, quotes, fenced code,
 * links, emphasis. HTML in it is shown, not interpreted.
 */

/** Returns the address of a link's target on the site; undefined: there is none, and the text alone is shown. */
export type ResolveLink = (target: string) => string | undefined

type Heading = { level: number; id: string; text: string }
/** What stands below one heading, without markup. */
export type Section = Heading & { body: string }

/** Takes the markup out of a line. */
const toText = (markdown: string): string =>
  markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .trim()

/** The anchor of a heading, as repositories on the web make it. */
const toAnchor = (text: string): string =>
  toText(text)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

const renderLink = (text: string, target: string, resolve: ResolveLink): string => {
  const address = resolve(target)
  return address === undefined ? text : `<a href="${escapeHtml(address)}">${text}</a>`
}

/** Renders what is inside a paragraph, a cell or an item. */
const renderInline = (text: string, resolve: ResolveLink): string =>
  text
    .split(/(``[^`]*(?:`[^`]+)*``|`[^`]+`)/)
    .map((part, index) => {
      if (index % 2 === 1) return `<code>${escapeHtml(part.replace(/^`+ ?| ?`+$/g, ''))}</code>`
      return escapeHtml(part)
        .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
        .replaceAll(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, '<em>$1</em>')
    })
    .join('')
    // After the code: a link's text may hold some.
    .replaceAll(/\[((?:[^\]<]|<[^>]*>)+)\]\(([^)\s]+)\)/g, (_, label: string, target: string) =>
      renderLink(label, target, resolve),
    )
    .replaceAll(/\*\*((?:[^*]|<[^>]*>)+?)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/\\([|*_`])/g, '$1')

const splitRow = (line: string): string[] =>
  line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split(/(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

const renderTable = (lines: readonly string[], resolve: ResolveLink): string => {
  const render = (tag: string, line: string) =>
    `<tr>${splitRow(line)
      .map((cell) => `<${tag}>${renderInline(cell, resolve)}</${tag}>`)
      .join('')}</tr>`
  const [head = '', , ...rows] = lines
  return `<div class="table"><table><thead>${render('th', head)}</thead><tbody>
${rows.map((row) => render('td', row)).join('\n')}
</tbody></table></div>`
}

const renderCode = (lines: readonly string[], language: string): string =>
  `<pre${language ? ` data-language="${escapeHtml(language)}"` : ''}><code>${escapeHtml(lines.join('\n'))}</code></pre>`

const ITEM = /^(\s*)([-*]|\d+\.) +/

/** Takes a list from the lines: an item goes on with lines that are indented, or that are no block of their own. */
const takeList = (lines: readonly string[], resolve: ResolveLink): { html: string; taken: number } => {
  const isOrdered = /^\s*\d/.test(lines[0]!)
  const items: string[][] = []
  let taken = 0
  for (; taken < lines.length; taken++) {
    const line = lines[taken]!
    const item = ITEM.exec(line)
    if (item && item[1] === '') {
      if (/\d/.test(item[2]!) !== isOrdered) break
      items.push([line.slice(item[0].length)])
    } else if (line.trim() === '') {
      const next = lines[taken + 1] ?? ''
      if (!/^\s{2,}\S/.test(next) && !ITEM.test(next)) break
      items.at(-1)!.push('')
    } else if (/^\s/.test(line) || !isBlockStart(line)) {
      items.at(-1)!.push(line.replace(/^ {1,3}/, ''))
    } else break
  }
  const tag = isOrdered ? 'ol' : 'ul'
  const html = items.map((item) => `<li>${renderBlocks(item, resolve, true)}</li>`).join('\n')
  return { html: `<${tag}>\n${html}\n</${tag}>`, taken }
}

const isBlockStart = (line: string): boolean => /^(?:#{1,6} |```|\||> |---$)/.test(line) || ITEM.test(line)

/** Counts the lines from the first on that fit. */
const countWhile = (lines: readonly string[], fits: (line: string) => boolean): number => {
  const end = lines.findIndex((line) => !fits(line))
  return end < 0 ? lines.length : end
}

/** Takes one block from the beginning of the lines. */
const takeBlock = (
  lines: readonly string[],
  resolve: ResolveLink,
  isTight: boolean,
): { html: string; taken: number } => {
  const line = lines[0]!
  if (line.trim() === '') return { html: '', taken: 1 }
  const fence = /^```(\S*)/.exec(line)
  if (fence) {
    const length = countWhile(lines.slice(1), (each) => !each.startsWith('```'))
    return { html: renderCode(lines.slice(1, 1 + length), fence[1]!), taken: length + 2 }
  }
  const heading = /^(#{1,6}) (.*)/.exec(line)
  if (heading) {
    const level = heading[1]!.length
    const anchor = escapeHtml(toAnchor(heading[2]!))
    const link = `<a class="anchor" href="#${anchor}">${renderInline(heading[2]!, resolve)}</a>`
    return { html: `<h${level} id="${anchor}">${link}</h${level}>`, taken: 1 }
  }
  if (/^---\s*$/.test(line)) return { html: '<hr>', taken: 1 }
  if (line.startsWith('|')) {
    const taken = countWhile(lines, (each) => each.startsWith('|'))
    return { html: renderTable(lines.slice(0, taken), resolve), taken }
  }
  if (line.startsWith('>')) {
    const taken = countWhile(lines, (each) => each.startsWith('>'))
    const quoted = lines.slice(0, taken).map((each) => each.replace(/^> ?/, ''))
    return { html: `<blockquote>${renderBlocks(quoted, resolve)}</blockquote>`, taken }
  }
  if (ITEM.test(line)) return takeList(lines, resolve)
  const taken = 1 + countWhile(lines.slice(1), (each) => each.trim() !== '' && !isBlockStart(each))
  const text = renderInline(lines.slice(0, taken).join('\n'), resolve)
  return { html: isTight ? text : `<p>${text}</p>`, taken }
}

const renderBlocks = (lines: readonly string[], resolve: ResolveLink, isTight = false): string => {
  const blocks: string[] = []
  for (let at = 0; at < lines.length;) {
    const { html, taken } = takeBlock(lines.slice(at), resolve, isTight)
    if (html !== '') blocks.push(html)
    at += taken
  }
  return blocks.join('\n')
}

export const renderMarkdown = (markdown: string, resolve: ResolveLink): string =>
  renderBlocks(markdown.split('\n'), resolve)

/** Returns what stands below each heading. */
export const listSections = (markdown: string): Section[] => {
  const sections: (Heading & { lines: string[] })[] = []
  let isCode = false
  for (const line of markdown.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const heading = isCode ? null : /^(#{1,6}) (.*)/.exec(line)
    if (heading)
      sections.push({
        level: heading[1]!.length,
        id: toAnchor(heading[2]!),
        text: toText(heading[2]!),
        lines: [],
      })
    else if (!line.startsWith('```') && !/^[|\s:-]+$/.test(line)) sections.at(-1)?.lines.push(line)
  }
  return sections.map(({ lines, ...heading }) => ({
    ...heading,
    body: toText(
      lines
        .join(' ')
        .replaceAll(/ ?\| ?/g, ' ')
        .replaceAll(/\s+/g, ' '),
    ),
  }))
}

/** Replaces links to what the site does not have by their text. */
export const withoutDeadLinks = (markdown: string, resolve: ResolveLink): string =>
  markdown.replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (link, label: string, target: string) =>
    resolve(target) === undefined ? label : link,
  )
