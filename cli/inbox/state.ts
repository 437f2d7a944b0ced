import type { ThreadMessage } from '../thread.ts'

// What the inbox shows. Everything that changes it is in the other modules of this folder; `screen.ts` draws it.

export type Conversation = {
  readonly id: string
  readonly state: 'open' | 'closed'
  readonly contact: {
    readonly id: string
    readonly name: string | null
    readonly phone: string | null
    readonly groups?: readonly string[]
  } | null
  readonly group?: { readonly id: string }
  readonly channel: { readonly id: string; readonly name: string | null; readonly type: string | null } | null
  readonly assignee: { readonly staff_id: string; readonly name: string | null } | null
  readonly team_id: string | null
  readonly reply_status: string | null
  readonly tags: readonly { readonly name: string }[]
  readonly unread_count: number
  readonly waiting_since: string | null
  readonly sla: { readonly status: string } | null
  readonly reminder_at?: string | null
  readonly window: { readonly closes_at: string | null }
  readonly can_reply: boolean
  /** Why not. */
  readonly reason?: string
  readonly last_message: {
    readonly text: string | null
    readonly type: string
    readonly direction: string
    readonly status: string
  } | null
}

/** A call of an AI agent that waits for a decision. */
export type Approval = {
  readonly id: string
  readonly operation: string
  readonly reason: string | null
  readonly contact: { readonly name: string | null } | null
  readonly asked_by: {
    readonly staff: { readonly name: string | null }
    readonly key: { readonly name: string | null }
  }
  readonly expires_at: string
}

type ViewFilter = {
  readonly state: Conversation['state']
  readonly assigned?: false
  readonly assigned_staff_id?: 'me'
  readonly reply_status?: string
}

/** A list of conversations: a name, and the input of its search; or, without one, the approvals. */
type View = {
  readonly name: string
  readonly input?: ViewFilter & { readonly sort?: 'longest_wait' }
  /** Whether its rows are counted while another is shown. */
  readonly isCounted?: boolean
}

export const views: readonly View[] = [
  { name: 'Queue', input: { state: 'open', assigned: false, sort: 'longest_wait' }, isCounted: true },
  { name: 'Mine', input: { state: 'open', assigned_staff_id: 'me', sort: 'longest_wait' }, isCounted: true },
  {
    name: 'Waiting',
    input: { state: 'open', reply_status: 'incoming_no_reply', sort: 'longest_wait' },
    isCounted: true,
  },
  { name: 'Approvals' },
  { name: 'All', input: { state: 'open', sort: 'longest_wait' } },
  { name: 'Closed', input: { state: 'closed' } },
]

/** Whether a view has this conversation, by the same rules as the server's search. */
export const belongsTo = (view: View, row: Conversation, me: string): boolean => {
  if (!view.input) return false
  const { state, assigned, assigned_staff_id: mine, reply_status: status } = view.input
  return (
    row.state === state &&
    (assigned === undefined || (row.assignee === null && row.team_id === null)) &&
    (mine === undefined || row.assignee?.staff_id === me) &&
    (status === undefined || row.reply_status === status)
  )
}

type ComposerKind = 'reply' | 'note'
/** `at`: the cursor, as an index of the text. */
export type Draft = { readonly kind: ComposerKind; readonly text: string; readonly at: number }

/**
 * A reply, note, template or saved reply on its way. It has one idempotency key for its life, so that nothing is sent
 * twice. `text` is what is shown of it.
 */
export type Send = {
  readonly key: string
  readonly kind: ComposerKind | 'template' | 'saved reply'
  readonly text: string
  readonly input: Readonly<Record<string, unknown>>
  readonly status: 'sending' | 'failed' | 'unknown'
  readonly problem?: string
}

export type Thread = {
  readonly id: string
  readonly conversation: Conversation
  /** Oldest first. */
  readonly messages: readonly ThreadMessage[]
  readonly isLoading: boolean
  /** The message under the cursor, as an index; undefined at the composer, below the last. */
  readonly at: number | undefined
  /** Lines scrolled up from the message under the cursor, or from the end. */
  readonly scrolled: number
}

/** A variable of a template. `path`: where its value stands in the input of a send. */
export type FormField = {
  readonly path: readonly (string | number)[]
  readonly label: string
  readonly sample: string
  readonly text: string
}

/** A template that is filled in for the open conversation. `rehearsed`: what a dry run of the send answered. */
export type TemplateForm = {
  readonly kind: 'form'
  readonly name: string
  readonly body: string
  readonly example: Readonly<Record<string, unknown>>
  readonly fields: readonly FormField[]
  readonly at: number
  readonly rehearsed?: { readonly preview: string } | undefined
  readonly problem?: string | undefined
}

/** What a command printed, or the help, which has no title. */
export type Pager = {
  readonly kind: 'pager'
  title: string | undefined
  lines: readonly string[]
  scrolled: number
}

export type Choice = { readonly label: string; readonly run: () => void }

/** A line to type in, with choices below it that the text narrows down. */
export type Prompt = {
  readonly kind: 'prompt'
  readonly label: string
  text: string
  at: number
  /** Undefined while they are read. */
  choices: readonly Choice[] | undefined
  /** Runs when Enter is pressed without a choice. */
  readonly submit?: (text: string) => void
  /** Runs when it is left without one. */
  readonly cancel?: (text: string) => void
}

/** What takes the keys before the screen below it, which stays as it was. `question`: whether to send the draft. */
type Overlay = Prompt | TemplateForm | Pager | { readonly kind: 'question' }

export type InboxState = {
  readonly me: {
    readonly staffId: string
    readonly name: string
    readonly workspace: string
    readonly test: boolean
    readonly hidesPhones: boolean
  }
  readonly scopes: readonly string[]
  readonly zone: string
  /** The server's time ahead of this machine's, in milliseconds. */
  clockOffset: number
  view: number
  search: string
  rows: readonly Conversation[]
  /** Rows of the views, as they were counted last; a `+` behind where counting stopped. */
  counts: readonly (string | undefined)[]
  cursor: string | null
  isLoading: boolean
  /** The conversation under the cursor, and those that were selected for the next actions. */
  highlighted: string | undefined
  readonly selection: Set<string>
  approvals: {
    readonly rows: readonly Approval[]
    readonly at: number
    readonly isLoading: boolean
    /** The call under the cursor was decided elsewhere, so that another one has its place; until a key. */
    readonly isReplaced?: boolean
    /** The call that was decided here last. */
    readonly decided?: string
    readonly shown?: {
      readonly id: string
      readonly summary: readonly string[]
      readonly version: string | undefined
      readonly text?: string | undefined
      readonly messages: readonly ThreadMessage[]
    }
  }
  thread: Thread | undefined
  /** Messages as they were drawn last. `key`: the width and the time of that. */
  readonly drawn: WeakMap<ThreadMessage, { readonly key: string; readonly lines: readonly string[] }>
  focus: 'list' | 'thread' | 'composer'
  overlay: Overlay | undefined
  readonly drafts: Map<string, Draft>
  readonly sends: Map<string, readonly Send[]>
  /** Whether Control-S asks before a reply is sent. */
  asksBeforeSending: boolean
  /** Who else has answered a conversation since its draft was begun. */
  readonly answeredBy: Map<string, string>
  /** Until when the server takes no more calls, in milliseconds of this machine. */
  limitedUntil: number | undefined
  /** Undefined while connected; else since when the stream of events is lost. */
  lostAt: number | undefined
  notice: string | undefined
  /** The address of a file, to open or copy. */
  link: string | undefined
  /** A problem that nothing here fixes, such as a revoked key. */
  fatal: string | undefined
}

export const createState = (
  fixed: Pick<InboxState, 'me' | 'scopes' | 'zone' | 'clockOffset'>,
  drafts: ReadonlyMap<string, Draft>,
): InboxState => ({
  ...fixed,
  view: 0,
  search: '',
  rows: [],
  counts: [],
  cursor: null,
  isLoading: true,
  highlighted: undefined,
  selection: new Set(),
  approvals: { rows: [], at: 0, isLoading: true },
  thread: undefined,
  drawn: new WeakMap(),
  focus: 'list',
  overlay: undefined,
  drafts: new Map(drafts),
  sends: new Map(),
  asksBeforeSending: true,
  answeredBy: new Map(),
  limitedUntil: undefined,
  lostAt: undefined,
  notice: undefined,
  link: undefined,
  fatal: undefined,
})

/** Whether the approvals are shown in place of conversations. */
export const showsApprovals = ({ view }: InboxState): boolean => views[view]!.input === undefined

/** The conversation that has the focus: the open one, or the one under the cursor of the list. */
export const findFocused = ({ focus, thread, rows, highlighted }: InboxState): Conversation | undefined =>
  focus === 'list' ? rows.find(({ id }) => id === highlighted) : thread?.conversation

/** The message under the cursor. */
export const findMessage = ({ thread }: InboxState): ThreadMessage | undefined =>
  thread?.at === undefined ? undefined : thread.messages[thread.at]

/** The conversations that the next action hits: of a selection, those that are still in the list. */
export const findTargets = (state: InboxState): readonly Conversation[] => {
  if (state.selection.size > 0) return state.rows.filter(({ id }) => state.selection.has(id))
  const focused = findFocused(state)
  return focused ? [focused] : []
}

export const describeContact = ({ contact, group }: Conversation): string =>
  contact ? (contact.name ?? contact.phone ?? `Contact ${contact.id}`) : group ? 'Group' : 'Deleted contact'

/** Names the target of an action, or counts them. */
export const describeTargets = (targets: readonly Conversation[]): string =>
  targets.length === 1 ? describeContact(targets[0]!) : `${targets.length} conversations`

/** Whether templates can be sent on the channel of a conversation. */
export const takesTemplates = ({ channel, can_reply: canReply, reason }: Conversation): boolean =>
  channel?.type === 'chatapp' && (canReply || reason === 'window_closed')

/** Why no reply can be sent; undefined where one can. */
export const explainNoReply = (conversation: Conversation): string | undefined => {
  const { can_reply: canReply, reason } = conversation
  if (canReply) return undefined
  if (reason === 'group') return 'This is a group: it is read here, and answered in the phone app.'
  if (reason !== 'window_closed') return `Nothing can be sent now: ${reason?.replaceAll('_', ' ')}.`
  return takesTemplates(conversation)
    ? 'No reply can be sent now, only a template: ^T.'
    : 'No reply can be sent now: the customer has to write first.'
}

export const emptyDraft: Draft = { kind: 'reply', text: '', at: 0 }

export const getDraft = (state: InboxState): Draft =>
  (state.thread && state.drafts.get(state.thread.id)) ?? emptyDraft

/** The time of the workspace, which a sandbox may have moved. */
export const timeNow = ({ clockOffset }: InboxState): number => Date.now() + clockOffset
