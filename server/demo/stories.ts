/**
 * What customers and staff of a coffee roastery write to each other. The first character of a line says what
 * it is: `>` a message from the customer, `<` from a staff member, `#` an internal note, `!` the reason with
 * which the conversation is closed. `{name}` is the customer's name, `{order}` a number; `[image]`,
 * `[document]`, `[audio]` and `[location]` say what comes with the text. A message from staff may end in `~`
 * and the emoji with which the customer reacts.
 */
export type Story = readonly string[]

export const stories: Readonly<Record<string, readonly Story[]>> = {
  en: [
    [
      '> Hi! Is my order {order} on its way?',
      '< Hello {name}, it left us this morning and should be with you tomorrow.',
      '> Great, thank you!',
      '< You are welcome. Enjoy the coffee ☕ ~❤️',
      '! Delivered',
    ],
    [
      '> [image] One of the bags arrived torn open.',
      '> It is order {order}.',
      '# Third torn bag this week. Told the packing team.',
      '< I am sorry, {name}! We will send you a new bag today, at no cost.',
      '> That is kind of you, thanks.',
      '! Replaced',
    ],
    [
      '> Do you run a brewing workshop in October?',
      '< We do, on the 14th and the 28th at 18:00. Shall I book a place for you?',
      '> Two places on the 28th please',
      '< Booked, {name}. See you then! ~👍',
      '! Booked',
      '> Sorry, could you make that three?',
      '< Of course, three it is. ~🙏',
      '! Booked',
    ],
    [
      '> Which beans would you take for a moka pot?',
      '> I like it strong but not bitter',
      '< Then try the Harar: chocolate, low acidity. We grind it for you if you like.',
      '> Ground please, 500 g.',
      '< [document] Here is your invoice, {name}.',
      '! Sold',
    ],
    [
      '> [location]',
      '> I am here, where is the shop?',
      '< Two minutes from there: cross the bridge, then it is the blue door on the left.',
      '> Found it 👍',
      '! Answered',
    ],
  ],
  de: [
    [
      '> Hallo, wann kommt meine Bestellung {order}?',
      '< Guten Tag {name}, das Paket ist heute früh rausgegangen und sollte morgen da sein.',
      '> Super, vielen Dank!',
      '! Zugestellt',
    ],
    [
      '> [image] Die Tüte war leider offen.',
      '< Das tut uns leid, {name}! Wir schicken Ihnen heute noch Ersatz.',
      '> Danke, das ist sehr nett.',
      '# Stammkundin: Probierpäckchen beilegen.',
      '! Ersatz verschickt',
    ],
    [
      '> Habt ihr am Samstag geöffnet?',
      '< Ja, von 9 bis 16 Uhr. Bis dann! ~👍',
      '> Perfekt 😊',
      '! Beantwortet',
    ],
  ],
  fr: [
    [
      '> Bonjour, où en est ma commande {order} ?',
      '< Bonjour {name}, elle est partie ce matin, vous la recevrez demain.',
      '> Merci beaucoup !',
      '! Livrée',
    ],
    [
      '> Quel café me conseillez-vous pour une cafetière italienne ?',
      '< Le Harar, {name} : chocolaté et peu acide. Nous pouvons le moudre.',
      '> Parfait, 250 g moulu s’il vous plaît.',
      '< C’est noté, à bientôt !',
      '! Vendu',
    ],
  ],
  es: [
    [
      '> Hola, ¿ya salió mi pedido {order}?',
      '< Hola, {name}. Salió esta mañana y llega mañana.',
      '> ¡Muchas gracias!',
      '! Entregado',
    ],
    [
      '> ¿Tienen café descafeinado en grano?',
      '< Sí, de Colombia, en bolsas de 250 g y de 1 kg.',
      '> Quiero dos de 250 g',
      '< [document] Aquí tiene la factura, {name}.',
      '! Vendido',
    ],
    [
      '> [audio]',
      '# Pide cambiar la dirección de envío.',
      '< Listo, {name}, hemos cambiado la dirección.',
      '> Perfecto, gracias',
      '! Resuelto',
    ],
  ],
  it: [
    [
      '> Buongiorno, a che punto è il mio ordine {order}?',
      '< Buongiorno {name}, è partito stamattina e arriva domani.',
      '> Grazie mille!',
      '! Consegnato',
    ],
  ],
  pl: [
    [
      '> Dzień dobry, kiedy dotrze zamówienie {order}?',
      '< Dzień dobry! Paczka wyszła dziś rano, jutro powinna być u Państwa.',
      '> Dziękuję bardzo!',
      '! Dostarczone',
    ],
  ],
  pt: [
    [
      '> Oi! Meu pedido {order} já saiu?',
      '< Oi, {name}! Saiu hoje cedo e chega amanhã.',
      '> Obrigado 🙏',
      '! Entregue',
    ],
  ],
  tr: [
    [
      '> Merhaba, {order} numaralı siparişim yolda mı?',
      '< Merhaba {name}, bu sabah kargoya verildi, yarın elinizde olur.',
      '> Çok teşekkürler!',
      '! Teslim edildi',
    ],
  ],
  hi: [
    [
      '> नमस्ते, मेरा ऑर्डर {order} कब पहुँचेगा?',
      '< नमस्ते {name}, आज सुबह निकल गया है, कल तक पहुँच जाएगा।',
      '> धन्यवाद!',
      '! पहुँच गया',
    ],
  ],
  ja: [
    [
      '> 注文{order}はいつ届きますか？',
      '< {name}様、今朝発送いたしました。明日お届け予定です。',
      '> ありがとうございます！',
      '! 配達済み',
    ],
  ],
  ar: [
    [
      '> مرحباً، متى يصل طلبي رقم {order}؟',
      '< أهلاً {name}، خرج الطلب صباح اليوم ويصل غداً إن شاء الله.',
      '> شكراً جزيلاً',
      '! تم التسليم',
    ],
  ],
  zh: [
    [
      '> 你好，我的订单{order}发货了吗？',
      '< 您好，{name}，今天早上已经发货，明天送达。',
      '> 好的，谢谢！',
      '! 已送达',
    ],
  ],
}

/** Returns the language of customers whose phone begins with this prefix; English when none is listed. */
export const languageForPhone = (prefix: string): string =>
  LANGUAGES.find(([start]) => prefix.startsWith(start))?.[1] ?? 'en'

const LANGUAGES: readonly (readonly [string, string])[] = [
  ['49', 'de'],
  ['33', 'fr'],
  ['34', 'es'],
  ['39', 'it'],
  ['48', 'pl'],
  ['55', 'pt'],
  ['90', 'tr'],
  ['91', 'hi'],
  ['81', 'ja'],
  ['20', 'ar'],
  ['86', 'zh'],
]
