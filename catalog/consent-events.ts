import { z } from 'zod'
import { defineEventType } from './event-type.ts'
import { Id, idOf, Timestamp } from './fields.ts'

export const ConsentState = z.enum(['granted', 'withdrawn'])
export const ConsentSource = z.enum(['form', 'import', 'reply', 'provider', 'staff'])

export const consentEvents = {
  'consent.changed/1': defineEventType(
    'A contact granted or withdrew consent to a purpose, on one type of channel or all.',
    z.object({
      consent: z
        .object({
          id: Id.describe('Id of the record.'),
          contact_id: idOf('contact').describe('Contact.'),
          purpose: z.string().describe('What it is for, such as `marketing`.'),
          channel: z.string().describe('Type of channel, or `all`.'),
          state: ConsentState.describe('`granted` or `withdrawn`.'),
          source: ConsentSource.describe('How it came.'),
          at: Timestamp.describe('When the customer said so.'),
        })
        .describe('The consent.'),
    }),
    {
      consent: {
        id: '31',
        contact_id: '42',
        purpose: 'marketing',
        channel: 'all',
        state: 'withdrawn',
        source: 'reply',
        at: '2026-10-01T09:30:00.000Z',
      },
    },
  ),
} as const
