import { type Env, readCredentials } from '../credentials-file.ts'
import { commandGroups, localCommands } from '../groups.ts'
import { type CommandSpec, commandName, type Manifest, readManifest } from '../manifest.ts'
import { escapeControlCharacters, foldName } from '../text.ts'
import type { NamedRow } from './cache.ts'
import { type Lookup, endpointLookup } from './lookups.ts'
import { askFor, type Commands, type Question } from './question.ts'
import {
  type GeneratedCompletions,
  isChoices,
  isLookup,
  type Slot,
  type CommandNode,
  helpSlot,
  jsonSlot,
  urlSlot,
  withAliases,
} from './tree.ts'

/** A word that may stand in the line, without control characters, and what it is about. */
type Candidate = { readonly value: string; readonly about: string }

export type Candidates = {
  /** The shell completes paths itself. */
  readonly paths: 'files' | 'folders' | undefined
  /** More of the same word may follow: no space after it. */
  readonly open: boolean
  /** What stands in the word before what is completed. */
  readonly before: string
  readonly items: readonly Candidate[]
}

/** What completion depends on besides the words. `deadline`: in milliseconds since the process began. */
export type Surroundings = {
  readonly env: Env
  readonly deadline: number
  readonly generated: GeneratedCompletions
  /** Called when the server would have needed longer. */
  readonly onLate: () => void
}

const MAX_ABOUT = 50
const MAX_ITEMS = 500

const describe = (text: string): string => {
  const shown = escapeControlCharacters(text)
  return shown.length > MAX_ABOUT ? `${shown.slice(0, MAX_ABOUT - 1).trimEnd()}…` : shown
}

/** Keeps what begins with what is typed: in this case of letters, else in any. */
const matching = (items: readonly Candidate[], typed: string): Candidate[] => {
  const exact = items.filter(({ value }) => value.startsWith(typed))
  return exact.length > 0 ? exact : items.filter(({ value }) => foldName(value).startsWith(foldName(typed)))
}

const toCandidates = (values: readonly string[]): Candidate[] => values.map((value) => ({ value, about: '' }))

/** True for a name that means its row alone, wherever a value stands: anything else is better named by its id. */
const isSafeName = (name: string, { slot, before }: Question): boolean =>
  name === name.trim() &&
  escapeControlCharacters(name) === name &&
  !/^(?:\d+$|[@[{]|-$)/.test(name) &&
  !['me', 'none', 'null'].includes(name) &&
  !(before === '' && name.startsWith('-')) &&
  !(slot?.list && name.includes(','))

const nameCandidates = (rows: readonly NamedRow[], lookup: Lookup, question: Question): Candidate[] => {
  const counts = new Map<string, number>()
  for (const [, names] of rows)
    for (const name of new Set(names.map((each) => foldName(each))))
      counts.set(name, (counts.get(name) ?? 0) + 1)
  const isId = /^\d+$/.test(question.typed)
  return rows.flatMap(([id, names, about]): Candidate[] => {
    const title = [...names.slice(0, 1), about].filter((part) => part !== '').join(' · ')
    const own = names.filter((name) => counts.get(foldName(name)) === 1 && isSafeName(name, question))
    if (lookup.by.length === 0 || isId || own.length === 0) return [{ value: id, about: describe(title) }]
    return own.slice(0, 1).map((value) => ({ value, about: describe(about) }))
  })
}

const serverCandidates = async (
  lookup: Lookup,
  question: Question,
  { env, deadline, onLate }: Surroundings,
  version: string,
): Promise<Candidate[]> => {
  const { listNames } = await import('./names.ts')
  const { given, typed } = question
  const rows = await listNames(lookup, /^\d+$/.test(typed) ? '' : typed, {
    env,
    url: given.get('--url')?.at(-1),
    profile: given.get('--profile')?.at(-1),
    version,
    deadline,
    onLate,
  })
  const me = lookup.me ? [{ value: '@me', about: 'the person of the key' }] : []
  return [...me, ...nameCandidates(rows, lookup, question)]
}

const profileCandidates = (env: Env): Candidate[] =>
  Object.entries(readCredentials(env).profiles).map(([name, { url }]) => ({
    value: name,
    about: describe(url),
  }))

const operationCandidates = (specs: readonly CommandSpec[]): Candidate[] =>
  specs
    .filter(({ verb }) => verb !== 'export')
    .map((spec) => ({ value: spec.operation, about: `wcrm ${commandName(spec)}` }))

const valueCandidates = async (
  slot: Slot,
  question: Question,
  { commands: specs, version }: Manifest,
  around: Surroundings,
): Promise<Candidate[]> => {
  const { kind } = slot
  if (isChoices(kind)) return toCandidates(kind)
  if (isLookup(kind)) return await serverCandidates(kind, question, around, version)
  if (kind === 'profile') return profileCandidates(around.env)
  if (kind === 'operation') return operationCandidates(specs)
  if (kind === 'event') return toCandidates(around.generated.events)
  if (kind === 'path') return toCandidates(around.generated.paths)
  if (kind === 'toolset') return toCandidates(around.generated.toolsets)
  if (kind === 'field') return toCandidates(question.spec?.fields.map(({ name }) => name) ?? [])
  return slot.onlyAt ? toCandidates(['@']) : []
}

/** The flags that begin with what is typed: not those that were given and are taken once. */
const flagCandidates = ({ flags, given, typed }: Question): Candidate[] => {
  const free = Object.entries(flags).filter(([name, { list }]) => list || name === typed || !given.has(name))
  const longs = free.map(([name, { about = '' }]) => ({ value: name, about }))
  const negated = free
    .filter(([, { negatable }]) => negatable && typed.startsWith('--n'))
    .map(([name, { about = '' }]) => ({ value: name.replace('--', '--no-'), about }))
  const shorts = free.flatMap(([, { short, about = '' }]) => (short ? [{ value: short, about }] : []))
  return [...longs, ...negated, ...(/^-\w?$/.test(typed) ? shorts : [])]
}

/** Finds what the last of the words may become; the first one is the program. */
export const findCandidates = async (words: readonly string[], around: Surroundings): Promise<Candidates> => {
  const { generated } = around
  const manifest = readManifest()
  const commands: Commands = {
    specs: manifest.commands,
    groups: Object.assign({}, ...commandGroups.map((group) => group.commands)) as Record<string, string>,
    local: listLocalNodes(generated.commands),
  }
  const question = askFor(commands, words.slice(1))
  const { slot, before, typed, verbs } = question
  const paths = slot?.kind === 'folder' ? 'folders' : slot?.kind === 'file' ? 'files' : undefined
  const isAt = slot?.at && typed.startsWith('@') && !typed.startsWith('@@')
  if (paths) return { paths, open: false, before: isAt ? `${before}@` : before, items: [] }
  if (isAt) return { paths: 'files', open: false, before: `${before}@`, items: [] }
  const values = slot ? await valueCandidates(slot, question, manifest, around) : []
  const others = [
    ...Object.entries(verbs)
      .filter(([, { alias }]) => !alias || typed !== '')
      .map(([value, { about = '' }]) => ({ value, about })),
    ...flagCandidates(question),
  ]
  const taken = new Set(slot?.list ? before.replace(/^--[^=]*=/, '').split(',') : [])
  const items = matching([...values, ...others], typed).filter(({ value }) => !taken.has(value))
  const open =
    slot?.list === true ||
    slot?.onlyAt === true ||
    (slot?.kind === 'path' && items.some(({ value }) => value.endsWith('/')))
  return { paths: undefined, open, before, items: items.slice(0, MAX_ITEMS) }
}

const text = (about: string): Slot => ({ about, kind: 'text' })
const events: Slot = { about: 'only these types', kind: 'event', list: true }
const plan: Slot = { about: 'a plan, as --plan FILE writes it', kind: 'file' }
const reason = text('why, for the person who approves a call')
const profile: Slot = { about: 'a name for the key', kind: 'profile', short: '-p' }

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Flags and arguments of the commands that are not operations; every one takes `--help` too. */
const nodes: Readonly<Record<string, CommandNode>> = {
  inbox: { flags: { '--url': urlSlot } },
  diff: { args: [plan], flags: { '--url': urlSlot, '--json': jsonSlot } },
  apply: {
    args: [plan],
    flags: {
      '--confirm': { ...text('confirms the steps that need this verb'), list: true },
      '--reason': reason,
      '--retry': text('try again when the service is unavailable'),
      '--url': urlSlot,
      '--json': jsonSlot,
    },
  },
  login: {
    flags: {
      '--url': urlSlot,
      '--profile': profile,
      '--with-token': { about: 'read the key from standard input' },
      '--json': jsonSlot,
    },
  },
  logout: { flags: { '--url': urlSlot } },
  status: { flags: { '--url': urlSlot, '--json': jsonSlot } },
  profiles: { flags: { '--json': jsonSlot } },
  switch: {
    args: [{ about: 'the name of the profile', kind: 'profile' }],
    flags: { '--json': jsonSlot },
  },
  'login-code': { flags: { '--url': urlSlot, '--json': jsonSlot } },
  listen: {
    flags: {
      '--forward-to': text('the target; without it events are only printed'),
      '--since': { about: 'now, the id of an event, or a duration', kind: ['now'] },
      '--events': events,
      '--secret': { ...text('the signing secret'), at: true },
      '--attempts': text('attempts for each event if the target responds with an error'),
      '--url': urlSlot,
      '--json': jsonSlot,
    },
  },
  trigger: {
    args: [{ about: 'the event', kind: 'event' }],
    flags: {
      '--test': { about: 'send a test event, also where the sandbox could make it happen' },
      '--endpoint': { about: 'the endpoint that gets the test', kind: endpointLookup },
      '--wait': text('how many seconds to wait for the outcome of a test'),
      '--url': urlSlot,
      '--json': jsonSlot,
    },
  },
  api: {
    args: [
      { about: 'the method', kind: METHODS },
      { about: 'a path of the server', kind: 'path' },
    ],
    flags: {
      '--field': { ...text('a field of the body or the query'), short: '-f', list: true },
      '--input': { about: 'the body: a file, or - for standard input', kind: 'file', at: true },
      '--include': { about: 'print status and headers before the body', short: '-i' },
      '--dry-run': { about: 'run every check, but change nothing' },
      '--confirm': text('confirms a call that needs it'),
      '--reason': reason,
      '--idempotency-key': text('a call with the same key never runs twice'),
      '--url': urlSlot,
      '--json': jsonSlot,
    },
  },
  ops: { args: [{ about: 'the operation', kind: 'operation' }], flags: { '--json': jsonSlot } },
  schema: {
    args: [
      { about: 'the operation', kind: 'operation' },
      { about: 'a field of it', kind: 'field' },
    ],
    flags: { '--output': { about: 'what it answers instead' }, '--json': jsonSlot },
  },
  doctor: { flags: { '--url': urlSlot, '--json': jsonSlot } },
  completion: { args: [{ about: 'the shell', kind: ['bash', 'zsh', 'fish'] }] },
  mcp: {
    flags: {
      '--url': urlSlot,
      '--toolsets': { about: 'only the tools of these sets', kind: 'toolset', list: true },
      '--readonly': { about: 'no tool that changes anything' },
      '--compact': { about: 'three tools that search and run operations' },
    },
  },
}

/** Adds the other names of the verbs, at every depth. */
const withAllAliases = (node: CommandNode): CommandNode => {
  if (!node.verbs) return node
  const verbs = Object.entries(node.verbs).map(([verb, each]) => [verb, withAllAliases(each)] as const)
  return { ...node, verbs: withAliases(Object.fromEntries(verbs)) }
}

/** Returns the commands that are not operations; those of the server are `generated`. */
const listLocalNodes = (
  generated: Readonly<Record<string, CommandNode>>,
): Readonly<Record<string, CommandNode>> =>
  Object.fromEntries(
    Object.entries(localCommands).map(([name, about]) => {
      const own = nodes[name] ?? generated[name] ?? {}
      // The verbs of the sandbox are what a customer does, not changes of records.
      const node = name === 'admin' ? withAllAliases(own) : own
      return [name, { ...node, about, flags: { ...node.flags, '--help': helpSlot } }]
    }),
  )
