import { z } from 'zod'
import {
  deletedNamed,
  SavedFiltersNaming,
  idOf,
  listWithTotal,
  page,
  Search,
  Timestamp,
  VisibleName,
} from './fields.ts'
import { BY_FILTER, target, targetAlternatives, targetResult } from './bulk-jobs.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

/** One emoji as people count: a single grapheme of the emoji set, with its modifiers (UTS #51). */
const isOneEmoji = (text: string): boolean =>
  /^\p{RGI_Emoji}$/v.test(text) || /^\p{Extended_Pictographic}\uFE0F?$/u.test(text)

const Emoji = z
  .string()
  .min(1)
  .max(10)
  .refine(isOneEmoji, 'must be one emoji')
  .meta({ examples: ['⭐'] })

export const GroupRef = z.object({
  id: idOf('group').describe('Group id.'),
  name: z.string().nullable().describe('Group name.'),
})

const Group = z
  .object({
    id: idOf('group').describe('Group id.'),
    name: z.string().describe('Group name; unique, ignoring case.'),
    emoji: z.string().nullable().describe('One emoji.'),
    contacts_count: z.int().describe('Contacts in it.'),
    created_at: Timestamp.describe('When it was created.'),
  })
  .meta({ id: 'Group' })

const group = { id: '3', name: 'VIP', emoji: '⭐' }

export const listGroups = defineOperation({
  name: 'crm_list_groups',
  cli: 'groups list',
  routes: ['GET /v1/groups'],
  since,
  stability: 'stable',
  summary: 'List contact groups by name',
  words: 'groups, segments, static lists, all groups',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name', wrap: true },
    { path: 'emoji' },
    { path: 'contacts_count', title: 'contacts' },
    { path: 'created_at', title: 'created' },
  ],
  names: { fields: { group_id: 'group', group_ids: 'group' }, by: ['name'] },
  input: z.object({ search: Search('Name'), ...page }),
  output: z.object(listWithTotal(Group)),
  errors: [],
  examples: [
    {
      title: 'All groups',
      input: {},
      output: {
        data: [{ ...group, contacts_count: 12, created_at: '2026-10-01T09:30:00.000Z' }],
        total: 1,
        next_cursor: null,
      },
    },
  ],
})

export const createGroup = defineOperation({
  name: 'crm_create_group',
  cli: 'groups create',
  routes: ['POST /v1/groups'],
  since,
  stability: 'stable',
  summary: 'Create a contact group, or return the one that already has this name',
  description:
    'Names are compared ignoring case. An existing group is returned unchanged, with `created: false`.',
  words: 'new group, create segment, static list',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['group.created/1'],
  input: z.object({
    name: VisibleName(100).describe('Group name, 1 to 100 characters.'),
    emoji: Emoji.optional().describe('One emoji.'),
  }),
  output: z.object({
    group: z
      .object({
        id: idOf('group').nullable().describe('Group id; null when a dry run would create it.'),
        name: z.string().nullable().describe('Group name.'),
        emoji: z.string().nullable().describe('One emoji.'),
      })
      .describe('The group.'),
    created: z.boolean().describe('False: a group with this name already existed.'),
  }),
  errors: [],
  examples: [
    {
      title: 'A group with an emoji',
      input: { name: 'VIP', emoji: '⭐' },
      output: { group, created: true },
    },
  ],
})

export const updateGroup = defineOperation({
  name: 'crm_update_group',
  cli: 'groups update',
  routes: ['PATCH /v1/groups/{group_id}'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Change the name or the emoji of a contact group',
  description:
    'Omitted fields do not change. 409 `name_taken` when another group has the name, ignoring case. Saved filters ' +
    'that name it in full follow it.',
  words: 'rename a group, change the name or emoji of a group, edit segment',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: ['group.updated/1'],
  input: z.object({
    group_id: idOf('group').describe('Group id.'),
    name: VisibleName(100).optional().describe('Group name, 1 to 100 characters.'),
    emoji: Emoji.nullable().optional().describe('One emoji; null removes it.'),
  }),
  output: z.object({
    group: z
      .object({
        id: idOf('group').describe('Group id.'),
        name: z.string().describe('Group name.'),
        emoji: z.string().nullable().describe('One emoji.'),
      })
      .describe('The group.'),
    changes: z.array(z.string()).describe('Fields whose value differs; empty when nothing changes.'),
    saved_filters: SavedFiltersNaming.optional().describe(
      'Saved filters that follow its name; absent if none.',
    ),
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'Another name',
      input: { group_id: '3', name: 'Regulars' },
      output: { group: { ...group, name: 'Regulars' }, changes: ['name'] },
    },
  ],
})

export const deleteGroup = defineOperation({
  name: 'crm_delete_group',
  cli: 'groups delete',
  routes: ['DELETE /v1/groups/{group_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a contact group; its contacts stay',
  words: 'delete a group, remove a segment or list',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: ['group.deleted/1'],
  input: z.object({ group_id: idOf('group').describe('Group id.') }),
  output: z.object(deletedNamed),
  errors: ['not_found', 'conflict', 'confirm_required'],
  examples: [
    {
      title: 'Delete a group',
      input: { group_id: '3' },
      output: { id: '3', deleted: true, saved_filters: [{ id: '3', name: 'Members' }] },
    },
  ],
})

const members = {
  input: { group_id: '3', contact_ids: ['42', '43'] },
  output: { requested: 2, succeeded: 2, failed: 0, failures: [], stopped_early: false, matched: 2 },
}

export const addContactsToGroup = defineOperation({
  name: 'crm_add_contacts_to_group',
  cli: 'groups add-contacts',
  routes: ['POST /v1/groups/{group_id}/contacts'],
  since,
  stability: 'stable',
  summary: 'Add contacts to a group',
  description: `A contact that is already in the group counts as a success. ${BY_FILTER}`,
  words: 'put a customer in a group, add members to a segment or list',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['contact.groups_added/1'],
  input: z.object({ group_id: idOf('group').describe('Group id.'), ...target }),
  output: z.object(targetResult),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['not_found', 'conflict', 'forbidden', 'service_unconfigured'],
  examples: [{ title: 'Two contacts', ...members }],
})

export const removeContactsFromGroup = defineOperation({
  name: 'crm_remove_contacts_from_group',
  cli: 'groups remove-contacts',
  routes: ['POST /v1/groups/{group_id}/contacts/remove'],
  since,
  stability: 'stable',
  summary: 'Remove contacts from a group',
  description: `A contact that is not in the group counts as a success. ${BY_FILTER}`,
  words: 'take a customer out of a group, remove members from a segment or list',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: ['contact.groups_removed/1'],
  input: z.object({ group_id: idOf('group').describe('Group id.'), ...target }),
  output: z.object(targetResult),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['not_found', 'conflict', 'forbidden', 'service_unconfigured'],
  examples: [{ title: 'Two contacts', ...members }],
})
