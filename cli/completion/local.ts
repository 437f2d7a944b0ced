import { localCommands } from '../groups.ts'
import { endpointLookup } from './lookups.ts'
import { type CommandNode, helpSlot, jsonSlot, type Slot, urlSlot, withAliases } from './tree.ts'

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
export const listLocalNodes = (
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
