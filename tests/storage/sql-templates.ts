import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'

/** A raw SQL template in the source: the pieces of text between its parameters. */
export type SqlTemplate = { file: string; line: number; chunks: string[] }

const normalizeSpace = (text: string): string => text.replace(/\s+/g, ' ').trim()

/** Templates such as `(${a}, ${b})` name nothing that could be misspelt. */
const hasWord = (chunks: readonly string[]): boolean => chunks.some((chunk) => /[a-z_]/i.test(chunk))

const templatesOf = (file: string): SqlTemplate[] => {
  const source = readFileSync(file, 'utf8')
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]!.message}`)
  const templates: SqlTemplate[] = []
  new Visitor({
    TaggedTemplateExpression: ({ tag, quasi, start }) => {
      if (tag.type !== 'Identifier' || tag.name !== 'sql') return
      const chunks = quasi.quasis.map(({ value }) => normalizeSpace(value.cooked ?? value.raw))
      if (hasWord(chunks)) templates.push({ file, line: source.slice(0, start).split('\n').length, chunks })
    },
  }).visit(program)
  return templates
}

/** Every raw SQL template of storage/ and the sandbox's, in the order of files and lines. */
export const sqlTemplates = (): SqlTemplate[] =>
  globSync('{storage,packages/sandbox/storage}/**/*.ts').sort().flatMap(templatesOf)

/** True when the pieces of the template stand in this SQL, in their order. */
export const isInSql = (template: SqlTemplate, sql: string): boolean => {
  const text = normalizeSpace(sql)
  let from = 0
  for (const chunk of template.chunks) {
    const at = text.indexOf(chunk, from)
    if (at < 0) return false
    from = at + chunk.length
  }
  return true
}
