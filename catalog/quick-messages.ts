import { z } from 'zod'
import { hasVisibleText } from './text.ts'
import {
  deleted,
  Id,
  idOf,
  listWithTotal,
  messageInput,
  page,
  Timestamp,
  Version,
  VisibleName,
} from './fields.ts'
import { Interactive } from './interactive.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

export const visibilities = ['private', 'team', 'company'] as const
/** Types that can be edited; others are read-only (specification, "Quick messages"). */
export const editableTypes = ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT'] as const

export const QuickMessage = z
  .object({
    id: idOf('quick_message').describe('Quick message id.'),
    code: z.string().nullable().describe('Shortcut typed after a slash in the inbox.'),
    title: z.string().nullable().describe('Title.'),
    type: z
      .string()
      .nullable()
      .describe('`TEXT`, `IMAGE`, `VIDEO`, `DOCUMENT`, `TEMPLATE`, `INTERACTIVE` and more.'),
    text: z.string().nullable().describe('Body, or caption of the media.'),
    media_url: z.string().nullable().describe('URL of the media.'),
    template_name: z.string().nullable().describe('Template, of type TEMPLATE.'),
    interactive: Interactive.optional().describe(
      'What can be tapped, of type INTERACTIVE; absent otherwise.',
    ),
    visibility: z.string().nullable().describe('`private`, `team` or `company`.'),
    team_id: Id.nullable().describe('The team that sees it.'),
    favorite: z.boolean().describe("True: a favourite of the key's owner."),
    can_edit: z
      .boolean()
      .describe(
        "True: the key's owner may change it. Its type must be editable, and it must be their own, or not " +
          'private and they are not an agent.',
      ),
    updated_at: Timestamp.nullable().describe('When it was last changed.'),
    version: Version,
  })
  .meta({ id: 'QuickMessage' })

const NewQuickMessage = QuickMessage.extend({
  id: idOf('quick_message').nullable().describe('Quick message id; null when a dry run would create it.'),
})

const Code = z
  .string()
  .trim()
  .min(1)
  .max(60)
  .regex(/^\S+$/u, 'must have no spaces')
  .refine(hasVisibleText, 'must have a visible character')
  .describe('Shortcut, 1 to 60 characters, no spaces; unique, ignoring case, among those that you may see.')
const fields = {
  title: VisibleName(120).describe('Title, 1 to 120 characters.'),
  description: z.string().max(500).describe('Description, at most 500 characters.'),
  text: z
    .string()
    .max(4096)
    .describe('Message, or caption of the media; may contain placeholders such as `{{contact.name}}`.'),
  media_url: z
    .union(
      [z.literal(''), z.url({ protocol: /^https$/ }).max(2000)],
      'must be an https URL of at most 2000 characters',
    )
    .describe('Public https URL of the media; empty is as if left out.'),
  file_name: z
    .union([z.literal(''), VisibleName(200)], 'must be a name of at most 200 characters, one of them visible')
    .describe('File name, of type DOCUMENT; empty is none.'),
  visibility: z.enum(visibilities).describe('Who sees it: `private`, `team` or `company`.'),
  team_id: z
    .union([z.literal(''), Id], 'must be an id: 1 to 19 digits, not starting with 0')
    .describe(
      'The team that sees it; required with visibility `team`, refused otherwise; empty is as if left out. ' +
        'Agents must name a team of their own.',
    ),
}
const row = {
  id: '2',
  code: 'hours',
  title: 'Opening hours',
  type: 'TEXT',
  text: 'Hello {{contact.name}}, we are open from 9 to 18.',
  media_url: null,
  template_name: null,
  visibility: 'company',
  team_id: null,
  favorite: false,
  can_edit: true,
  updated_at: '2026-10-01T09:30:00.000Z',
  version: '2',
}

export const listQuickMessages = defineOperation({
  name: 'messaging_list_quick_messages',
  cli: 'quick-messages list',
  routes: ['GET /v1/quick-messages'],
  since,
  stability: 'stable',
  summary: "List the quick messages that the key's owner may use, by code",
  description:
    "Those of the company, of the owner's teams, and the owner's private ones. Staff who are " +
    'not agents see those of every team.',
  slim: ['id', 'code', 'title', 'type', 'text', 'interactive'],
  words:
    'canned answers, canned responses, saved replies, snippets, shortcuts, macros, text blocks, ' +
    'predefined, prepared answers, FAQ',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'code' },
    { path: 'title' },
    { path: 'text', wrap: true },
    { path: 'type' },
    { path: 'visibility' },
    { path: 'favorite' },
    { path: 'updated_at', title: 'updated' },
  ],
  names: { fields: { quick_message_id: 'quick-message' }, by: ['code'], search: 'query', beside: 'title' },
  input: z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .optional()
      .describe('Code, title or text contains this, ignoring case.'),
    type: z.string().min(1).max(40).optional().describe('Only of this type.'),
    visibility: z.enum(visibilities).optional().describe('Only with this visibility.'),
    ...page,
  }),
  output: z.object(listWithTotal(QuickMessage)),
  errors: [],
  examples: [
    {
      title: 'Search by text',
      input: { query: 'hours' },
      output: { data: [row], total: 1, next_cursor: null },
    },
  ],
})

export const createQuickMessage = defineOperation({
  name: 'messaging_create_quick_message',
  cli: 'quick-messages create',
  routes: [{ route: 'POST /v1/quick-messages', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Save a reply for the team',
  description:
    'TEXT requires `text`; IMAGE, VIDEO and DOCUMENT require `media_url`; INTERACTIVE requires `text` and ' +
    '`interactive`, and cannot be edited: delete it and create another. Unknown placeholders are ' +
    'refused. A code that a message visible to you has is refused with `duplicate`; messages that you ' +
    'cannot see, such as private ones of others, do not reserve codes.',
  words: 'create a canned answer, canned response, saved reply, snippet, shortcut, macro',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  versioned: { kind: 'quick_message' },
  emits: [],
  input: messageInput({
    code: Code,
    type: z
      .enum([...editableTypes, 'INTERACTIVE'])
      .default('TEXT')
      .describe('Type; cannot change later.'),
    title: fields.title.optional(),
    description: fields.description.optional(),
    text: fields.text.optional(),
    interactive: Interactive.optional().describe('What can be tapped below `text`; without placeholders.'),
    media_url: fields.media_url.optional(),
    file_name: fields.file_name.optional(),
    visibility: fields.visibility.default('private'),
    team_id: fields.team_id.optional(),
  }),
  output: NewQuickMessage,
  errors: ['not_found', 'forbidden', 'conflict'],
  examples: [
    {
      title: 'A greeting',
      input: {
        code: 'weekend',
        title: 'At the weekend',
        text: 'Hello {{contact.name}}, we are open again on Monday.',
        visibility: 'company',
      },
      output: {
        ...row,
        id: '21',
        code: 'weekend',
        title: 'At the weekend',
        text: 'Hello {{contact.name}}, we are open again on Monday.',
      },
    },
    {
      title: 'For one team',
      input: {
        code: 'catering',
        type: 'DOCUMENT',
        text: 'Our catering menu',
        media_url: 'https://files.example.com/catering.pdf',
        file_name: 'catering.pdf',
        visibility: 'team',
        team_id: '3',
      },
      output: {
        ...row,
        id: '22',
        code: 'catering',
        title: null,
        type: 'DOCUMENT',
        text: 'Our catering menu',
        media_url: 'https://files.example.com/catering.pdf',
        visibility: 'team',
        team_id: '3',
      },
    },
    {
      title: 'With buttons',
      input: {
        code: 'delivery',
        type: 'INTERACTIVE',
        text: 'Shall we deliver today, {{contact.name}}?',
        interactive: { kind: 'buttons', buttons: [{ title: 'Yes, today' }, { title: 'Another day' }] },
      },
      output: {
        ...row,
        id: '23',
        code: 'delivery',
        title: null,
        type: 'INTERACTIVE',
        text: 'Shall we deliver today, {{contact.name}}?',
        interactive: { kind: 'buttons', buttons: [{ title: 'Yes, today' }, { title: 'Another day' }] },
        visibility: 'private',
        can_edit: false,
      },
    },
  ],
})

export const updateQuickMessage = defineOperation({
  name: 'messaging_update_quick_message',
  cli: 'quick-messages update',
  routes: ['PATCH /v1/quick-messages/{quick_message_id}'],
  since,
  stability: 'stable',
  summary: 'Change a quick message',
  description:
    'Omitted fields do not change. The type cannot change; only TEXT, IMAGE, VIDEO and DOCUMENT can be ' +
    'edited. An empty `description`, or `text` of media, clears it. ' +
    'Any visibility but `team` clears the team; only the owner can make it private.',
  words: 'edit a canned answer, canned response, saved reply, snippet, shortcut, macro',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  versioned: { kind: 'quick_message', by: 'quick_message_id' },
  // What others send.
  asks: true,
  emits: [],
  input: messageInput({
    quick_message_id: idOf('quick_message').describe('Quick message id.'),
    code: Code.optional(),
    title: fields.title.optional(),
    description: fields.description.optional(),
    text: fields.text.optional(),
    media_url: fields.media_url.optional(),
    file_name: fields.file_name.optional(),
    visibility: fields.visibility.optional(),
    team_id: fields.team_id.optional(),
  }),
  output: QuickMessage,
  errors: ['not_found', 'forbidden', 'conflict', 'precondition_failed'],
  examples: [
    {
      title: 'Change the wording',
      input: { quick_message_id: '2', text: 'We are open from 9 to 18.' },
      output: { ...row, text: 'We are open from 9 to 18.' },
    },
    {
      title: 'For one team',
      input: { quick_message_id: '2', visibility: 'team', team_id: '3' },
      output: { ...row, visibility: 'team', team_id: '3' },
    },
  ],
})

export const deleteQuickMessage = defineOperation({
  name: 'messaging_delete_quick_message',
  cli: 'quick-messages delete',
  routes: ['DELETE /v1/quick-messages/{quick_message_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a quick message',
  words: 'remove a canned answer, canned response, saved reply, snippet, shortcut, macro',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  versioned: { kind: 'quick_message', by: 'quick_message_id' },
  emits: [],
  input: z.object({ quick_message_id: idOf('quick_message').describe('Quick message id.') }),
  output: z.object(deleted),
  errors: ['not_found', 'forbidden', 'confirm_required', 'precondition_failed'],
  examples: [
    {
      title: 'Delete a quick message',
      input: { quick_message_id: '2' },
      output: { id: '2', deleted: true },
    },
  ],
})
