import { z } from 'zod'
import { defineEventType } from './event-type.ts'
import { Id } from './fields.ts'

const EventGroup = z.object({
  group: z
    .object({
      id: Id.describe('Group id.'),
      name: z.string().describe('Name.'),
      emoji: z.string().nullable().describe('Emoji.'),
    })
    .describe('The group.'),
})

const group = { group: { id: '3', name: 'VIP', emoji: '⭐' } }

/** Events of groups and tags themselves. */
export const labelEvents = {
  'group.created/1': defineEventType('A group was created.', EventGroup, group),
  'group.updated/1': defineEventType(
    'The name or the emoji of a group was changed.',
    EventGroup.extend({
      previous: z
        .object({
          name: z.string().describe('Name before.'),
          emoji: z.string().nullable().describe('Emoji before.'),
        })
        .describe('What it was before.'),
    }),
    { ...group, previous: { name: 'Friends', emoji: null } },
  ),
  'group.deleted/1': defineEventType('A group was deleted.', EventGroup, group),
  'tag.renamed/1': defineEventType(
    'A tag was renamed.',
    z.object({
      tag: z
        .object({
          id: Id.describe('Tag id.'),
          name: z.string().describe('Name.'),
          previous_name: z.string().describe('Name before.'),
        })
        .describe('The tag.'),
    }),
    { tag: { id: '7', name: 'Gold', previous_name: 'VIP' } },
  ),
  'tag.deleted/1': defineEventType(
    'A tag was deleted, and removed from all contacts and conversations, or merged into another one.',
    z.object({
      tag: z
        .object({
          id: Id.describe('Tag id.'),
          name: z.string().describe('Name.'),
          merged_into: Id.optional().describe('The tag that its contacts and conversations now have.'),
        })
        .describe('The tag.'),
    }),
    { tag: { id: '7', name: 'VIP' } },
  ),
} as const
