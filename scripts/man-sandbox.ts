import { writeFileSync } from 'node:fs'
import { exitCodes } from '../cli/groups.ts'
import { readManifest } from '../cli/manifest.ts'
import { usageOf, type Verb, verbs } from '../cli/sandbox/verbs.ts'
import { bold, italic, item, roff } from './man.ts'

// Writes man/wcrm-sandbox.1 from the commands of `wcrm sandbox`.

const FILE = new URL('../man/wcrm-sandbox.1', import.meta.url)

const sentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`
const bare = (term: string): string => term.replaceAll(/[<>]/g, '')

const flagItem = ([flags, about]: readonly [string, string], required: boolean): string => {
  const [flag, term] = flags.split(' ')
  return item(
    `${bold(flag!)}${term ? ` ${italic(bare(term))}` : ''}`,
    roff(sentence(about) + (required ? ' Required.' : '')),
  )
}

const verbSection = (verb: Verb): string =>
  [
    `.SS ${bold(`wcrm sandbox ${verb.name}`)}${(verb.places ?? []).map(([term]) => ` ${italic(bare(term))}`).join('')}`,
    `${roff(verb.summary)}.`,
    ...(verb.about ? ['.PP', roff(verb.about)] : []),
    ...(verb.places ?? []).map(([term, about]) => item(italic(bare(term)), roff(sentence(about)))),
    ...(verb.required ?? []).map((flag) => flagItem(flag, true)),
    ...(verb.options ?? []).map((flag) => flagItem(flag, false)),
    ...(verb.columns ? ['.PP', roff(`Columns when piped: ${verb.columns.join(', ')}.`)] : []),
  ].join('\n')

/** The page as it should be committed. */
export const sandboxPage = (): string =>
  `${[
    '.\\" Made by scripts/man-sandbox.ts from cli/sandbox/.',
    `.TH WCRM\\-SANDBOX 1 "" "wcrm ${readManifest().version}" "wcrm manual"`,
    '.SH NAME',
    'wcrm\\-sandbox \\- be the customer and the provider of the sandbox, or run one alone',
    '.SH SYNOPSIS',
    '.nf',
    ...verbs.map((verb) => roff(usageOf(verb))),
    '.fi',
    '.SH DESCRIPTION',
    roff(
      'A server without WCRM_PROVIDER_URL plays the messaging provider itself. These commands drive it, with the API key of the other commands and in its workspace; ids are those that wcrm shows. Unasked the sandbox does nothing but deliver, within a second, and approve templates, after two.',
    ),
    '.SH COMMANDS',
    ...verbs.map(verbSection),
    '.SH FLAGS OF ALL COMMANDS',
    flagItem(['--url <url>', 'base URL of the server, also WCRM_URL'], false),
    flagItem(['--json', 'print JSON; problems too'], false),
    '.SH EXIT STATUS',
    ...exitCodes.map(([code, about]) => item(bold(String(code)), roff(sentence(about)))),
    '.SH SEE ALSO',
    `${bold('wcrm')}(1)`,
  ].join('\n')}\n`

if (import.meta.main) writeFileSync(FILE, sandboxPage())
