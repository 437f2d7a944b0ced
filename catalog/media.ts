import { z } from 'zod'
import { idOf, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'

export const getMedia = defineOperation({
  name: 'messaging_get_media',
  cli: 'messages media',
  routes: ['GET /v1/messages/{message_id}/media'],
  since: '2026-10-01',
  stability: 'beta',
  summary: 'Read the image, video, audio file or document of a message',
  description:
    'The REST route returns the bytes, or redirects to them, unless `Accept` is `application/json`. ' +
    'Other interfaces return the media type and a URL that is readable without a key for 5 minutes. ' +
    '409 `media_pending`: the file is still being downloaded. 404 with the reason `no_media`, ' +
    '`media_lost` or `media_too_large`: there is no file.',
  words:
    'attachment, download a file, photo, picture, image, voice message, audio, video, document that ' +
    'the customer sent, see or open the photo that a client has sent',
  scope: 'mcp:read',
  bytes: true,
  input: z.object({ message_id: idOf('message').describe('Message id.') }),
  output: z.object({
    content_type: untrusted(z.string().describe('MIME type.')),
    file_name: untrusted(z.string().nullable().describe('File name.')),
    size: z.int().nullable().describe('Bytes; null if this server does not store it.'),
    url: untrusted(z.string().describe('URL of the bytes, readable without a key until `expires_at`.')),
    expires_at: Timestamp.nullable().describe('When the URL expires; null when it is on another server.'),
  }),
  errors: ['not_found', 'conflict', 'upstream_error'],
  examples: [
    {
      title: 'A photo',
      input: { message_id: '1657' },
      output: {
        content_type: 'image/jpeg',
        file_name: null,
        size: 48213,
        url: 'https://wcrm.example.com/media/x7Fv…',
        expires_at: '2026-10-01T09:37:00.000Z',
      },
    },
  ],
})
