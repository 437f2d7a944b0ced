import type { Db } from '../../storage/database.ts'
import { insertKnownUploads } from '../../packages/sandbox/storage/files.ts'

/** Handles of samples of each format, in the provider's form; `plantSamples` makes the sandbox know them. */
export const sampleHandles = {
  IMAGE: '4::aW1hZ2UvanBlZw==:ARZVv4zu',
  VIDEO: '4::dmlkZW8vbXA0:ARa',
  DOCUMENT: '4::YXBwbGljYXRpb24vcGRm:ARb',
} as const

/** Types of the samples, by handle. */
export const sampleTypes: ReadonlyMap<string, string> = new Map([
  [sampleHandles.IMAGE, 'image/jpeg'],
  [sampleHandles.VIDEO, 'video/mp4'],
  [sampleHandles.DOCUMENT, 'application/pdf'],
])

/** Adds the samples to the uploads of the sandbox, once. */
export const plantSamples = (db: Db): Promise<void> =>
  insertKnownUploads(
    db,
    [...sampleTypes].map(([handle, file_type]) => ({ handle, file_type })),
  )

const start = (hex: string): string => Buffer.from(hex, 'hex').toString('base64')

/** The smallest files that `messaging_upload_template_sample` takes. */
export const sampleFiles = {
  IMAGE: { file_name: 'a.jpg', content_type: 'image/jpeg', data: start('ffd8ffe000104a464946') },
  VIDEO: { file_name: 'a.mp4', content_type: 'video/mp4', data: start('00000018667479706d703432') },
  DOCUMENT: { file_name: 'a.pdf', content_type: 'application/pdf', data: start('255044462d312e37') },
} as const
