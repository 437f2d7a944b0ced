import { writeFileSync } from 'node:fs'
import { ruleTopics } from '../server/templates/lint.ts'
import { bases } from '../server/templates/lint/examples.ts'
import type { Example, Rule } from '../server/templates/lint/rule.ts'

// Writes docs/template-rules.md: every rule of template drafts, with an example that breaks it and one that
// passes.

const LONGEST_RUN = 12

/** Long runs of one character say only how many there are. */
const shortened = (json: string): string =>
  json.replaceAll(/(.)\1{20,}/gu, (run, char: string) => `${char.repeat(LONGEST_RUN)}…(${[...run].length})`)

/** As code in a cell of a table. */
const code = (text: string): string =>
  (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``).replaceAll('|', '\\|')

const exampleText = ({ base = 'plain', set = {} }: Example): string => {
  const changes = Object.entries(set).map(([path, value]) =>
    value === null ? `without ${code(path)}` : code(`${path}: ${shortened(JSON.stringify(value))}`),
  )
  return [...(base === 'plain' ? [] : [`*${base}*`]), ...changes].join('<br>') || '*plain*'
}

const row = ({ id, severity, about, breaks, passes }: Rule): string =>
  `| ${code(id)} | ${severity} | ${about} | ${exampleText(breaks)}<br>→ ${code(breaks.at)} | ${exampleText(passes)} |`

/** The page as it should be committed. */
export const rulesPage = (): string => `# Rules of template drafts

Written by \`npm run generate\`. \`POST /v1/templates/lint\` (\`wcrm templates lint\`) checks a draft against all of them and answers for each that is broken its
name, its place and the mend; nothing is saved. An **error** is what the provider refuses, or surely rejects in review: submitting such a draft is
refused with the reason \`template_rules\`. A **warning** is advice. Lengths are counted in Unicode characters (code points); a text of white space alone counts
as missing; variables are \`{{1}}\`, \`{{2}}\` and so on.

The examples say what they change in one of these drafts, *plain* where none is named, and where the issue is found:

${Object.entries(bases)
  .map(([name, draft]) => `- *${name}*: ${code(JSON.stringify(draft))}`)
  .join('\n')}

${Object.entries(ruleTopics)
  .map(
    ([topic, rules]) =>
      `## ${topic}\n\n| rule | | what it asks | breaks it | passes |\n|---|---|---|---|---|\n${rules.map(row).join('\n')}\n`,
  )
  .join('\n')}`

if (import.meta.main) writeFileSync(new URL('../docs/template-rules.md', import.meta.url), rulesPage())
