import { writeFileSync } from 'node:fs'
import { channelStatuses, channelTypes } from '../catalog/channels.ts'
import { eventTypes } from '../catalog/events.ts'
import { catalog, scopes } from '../catalog/index.ts'
import { roles } from '../catalog/workspace.ts'
import { adminGroups, ungroupedAdminVerbs } from '../cli/admin/program.ts'
import type { AdminVerb } from '../cli/admin/verb.ts'
import {
  type CommandNode,
  type GeneratedCompletions,
  helpSlot,
  jsonSlot,
  type Kind,
  shorten,
  type Slot,
  urlSlot,
} from '../cli/completion/tree.ts'
import { sandboxVerbs } from '../cli/sandbox/verbs.ts'
import { listToolsetNames } from '../mcp/toolsets.ts'

// Generates cli/completions.json: what completion needs of modules that take too long to load at a key press.

const FILE = new URL('../cli/completions.json', import.meta.url)

const POLICY_VERBS = ['send', 'submit', 'delete', 'erase', 'archive', 'rotate']

/** The choices of flags and arguments whose help lists them in words, by command and name. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  'admin channels create --type': channelTypes,
  'admin channels create --status': channelStatuses,
  'admin channels update --type': channelTypes,
  'admin channels update --status': channelStatuses,
  'admin staff create --role': roles,
  'admin staff update --role': roles,
  'admin keys create --scopes': ['all', ...scopes],
  'admin keys update --scopes': ['all', ...scopes],
  'admin keys policy --approval': ['person', 'client'],
  'admin keys policy --allow': POLICY_VERBS,
  'admin keys policy --ask': POLICY_VERBS,
  'admin keys policy --deny': POLICY_VERBS,
  'sandbox status <status>': ['delivered', 'read', 'failed'],
  'sandbox review <decision>': ['approve', 'reject', 'pause', 'category'],
  'sandbox review --category': ['MARKETING', 'UTILITY', 'AUTHENTICATION'],
  'sandbox fault add --on': ['messages', 'templates', 'links', 'media'],
  'sandbox account <action>': ['restrict', 'ban', 'revoke-token', 'restore', 'quality', 'limit'],
  'sandbox account [value]': ['GREEN', 'RED', 'TIER_10K'],
  'serve --processes': ['auto'],
}

const kindOf = (command: string, name: string, term: string): Kind => {
  const choices = CHOICES[`${command} ${name}`]
  if (choices) return choices
  if (/^[<[]file/.test(term)) return 'file'
  return term === '<dir>' ? 'folder' : 'text'
}

/** Creates the slot of a flag in the syntax of commander. */
const flagOf = (command: string, [syntax, about]: readonly [string, string]): [string, Slot] => {
  const [flag = '', ...rest] = syntax.split(' ')
  const term = rest.join(' ')
  return [
    flag,
    {
      about: shorten(about),
      ...(term === '' ? {} : { kind: kindOf(command, flag, term) }),
      ...(/^<(list|ids)>$/.test(term) ? { list: true as const } : {}),
      ...(term.startsWith('<@') ? { at: true as const, onlyAt: true as const } : {}),
    },
  ]
}

const argumentOf = (command: string, [term, about]: readonly [string, string]): Slot => ({
  about: shorten(about),
  kind: kindOf(command, term, term),
})

const databaseFlags: readonly (readonly [string, string])[] = [
  ['--data <dir>', 'folder of the embedded database (also WCRM_DATA)'],
  ['--database-url <url>', 'PostgreSQL database (also WCRM_DATABASE_URL)'],
]

const adminNode = (group: string, verb: AdminVerb): CommandNode => {
  const command = ['admin', group, verb.name].filter((word) => word !== '').join(' ')
  const given = [...(verb.required ?? []), ...(verb.options ?? [])]
  const common = [
    ...(verb.scoped ? [['--workspace <id>', 'workspace (default: the only one)'] as const] : []),
    ...(verb.access === 'none' ? [] : databaseFlags),
  ]
  return {
    about: verb.summary,
    ...(verb.argument ? { args: [argumentOf(command, verb.argument)] } : {}),
    flags: {
      ...Object.fromEntries([...common, ...given].map((flag) => flagOf(command, flag))),
      '--json': jsonSlot,
      '--help': helpSlot,
    },
  }
}

/** Commands of two words are below the first one, which has arguments of its own. */
const ungroupedAdminNodes = (): Record<string, CommandNode> => {
  const nodes: Record<string, CommandNode> = {}
  for (const verb of ungroupedAdminVerbs) {
    const [first = '', second] = verb.name.split(' ')
    const node = adminNode('', verb)
    const parent = nodes[first]
    nodes[first] = second === undefined ? node : { ...parent, verbs: { ...parent?.verbs, [second]: node } }
  }
  return nodes
}

const adminRoot = (): CommandNode => ({
  verbs: {
    ...Object.fromEntries(
      adminGroups.map(({ name, summary, verbs }) => [
        name,
        {
          about: summary,
          verbs: Object.fromEntries(verbs.map((verb) => [verb.name, adminNode(name, verb)])),
          flags: { '--help': helpSlot },
        },
      ]),
    ),
    ...ungroupedAdminNodes(),
  },
})

const sandboxRoot = (): CommandNode => {
  const verbs: Record<string, CommandNode> = {}
  for (const { name, summary, positionals = [], required = [], options = [], alone } of sandboxVerbs) {
    const command = `sandbox ${name}`
    const node: CommandNode = {
      about: summary,
      args: positionals.map((positional) => argumentOf(command, positional)),
      flags: {
        ...Object.fromEntries([...required, ...options].map((flag) => flagOf(command, flag))),
        ...(alone ? {} : { '--url': urlSlot }),
        '--json': jsonSlot,
        '--help': helpSlot,
      },
    }
    const [first = '', second] = name.split(' ')
    verbs[first] =
      second === undefined
        ? node
        : { flags: { '--help': helpSlot }, verbs: { ...verbs[first]?.verbs, [second]: node } }
  }
  return { verbs }
}

const serverNode = (command: string, flags: readonly (readonly [string, string])[]): CommandNode => ({
  flags: { ...Object.fromEntries(flags.map((flag) => flagOf(command, flag))), '--json': jsonSlot },
})

/** The paths of the API up to their first field, which a user has to know. */
const listPaths = (): string[] =>
  [
    ...new Set(
      catalog
        .flatMap((op) => op.routes.map((route) => (typeof route === 'string' ? route : route.route)))
        .map((route) => route.split(' ')[1]!.replace(/\{.*$/, '')),
    ),
  ].toSorted()

/** Renders the file as it should be committed. */
export const renderCompletions = (): string => {
  const generated: GeneratedCompletions = {
    commands: {
      admin: adminRoot(),
      sandbox: sandboxRoot(),
      serve: serverNode('serve', [
        ['--host <host>', 'address to listen on (default 127.0.0.1)'],
        ['--port <port>', 'port to listen on, 0 picks a free one (default 8787)'],
        ['--data <dir>', 'folder of the embedded database (default .wcrm)'],
        ['--database-url <url>', 'PostgreSQL 15 or newer instead of the embedded database'],
        ['--processes <number>', 'processes that share the port, or auto'],
        ['--no-demo', 'do not create a demo workspace in an empty database'],
        ['--no-migrate', 'refuse a database with an older schema instead of migrating it'],
      ]),
      worker: serverNode('worker', [
        ['--database-url <url>', 'PostgreSQL 15 or newer (also WCRM_DATABASE_URL)'],
        ['--data <dir>', 'folder of the secret, if WCRM_SECRET is not set (default .wcrm)'],
        ['--no-migrate', 'refuse a database with an older schema instead of migrating it'],
      ]),
    },
    events: Object.keys(eventTypes).toSorted(),
    toolsets: listToolsetNames(catalog),
    paths: listPaths(),
  }
  return `${JSON.stringify(generated)}\n`
}

if (import.meta.main) writeFileSync(FILE, renderCompletions())
