import { z } from 'zod'
import { marks } from '../marks.ts'
import { untrusted } from '../text.ts'

/** Bounds of the metadata of a contact. Lengths in characters (code points), size in bytes of UTF-8 as compact JSON. */
export const metadataLimits = { keys: 50, key: 40, value: 500, bytes: 16_384 } as const

const Key = z
  .string()
  .min(1)
  .max(metadataLimits.key)
  .regex(/^\P{Cc}*$/u, 'must not have control characters')

/** Changes of metadata: keys with their new values. */
export const MetadataInput = z
  .record(Key, z.string().max(metadataLimits.value).nullable())
  .refine((given) => Object.keys(given).length <= 2 * metadataLimits.keys, {
    error: 'names too many keys',
    params: { code: 'too_many_keys', fix: `Name at most ${2 * metadataLimits.keys} keys in a call.` },
  })
  .describe(
    'Data of integrations about the contact: at most 50 keys of 1 to 40 characters, values text of at ' +
      'most 500, 16 KB in all. Unnamed keys stay; null or empty text deletes a key. Not searchable. Only ' +
      'for owners, admins and managers who see phone numbers.',
  )
  .meta({ examples: [{ erp_segment: 'B', synced_at: '2026-10-01' }] })
  .register(marks, { phone: 'anything' })

export const Metadata = untrusted(
  z
    .record(z.string(), z.string())
    .optional()
    .describe(
      'Data of integrations about the contact. Absent from summary rows, and for agents and staff with ' +
        'hidden phone numbers.',
    ),
  { phone: 'anything' },
)
